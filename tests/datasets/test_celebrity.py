from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from neuroseqret.datasets import celebrity
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers.data_folder import read_folder

HEAD = "video_id,start,end,bbox,fps,width,height,partition,person_id\n"


def write_track(folder, person, video, track, rows):
    path = folder / "txt" / person / video / f"{track:05d}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f"{frame:06d} \t{x} \t{y} \t{w} \t{h} \n" for frame, x, y, w, h in rows)
    head = (
        f"Identity  : \t{person}\nReference : \t{video}\nOffset    : \t-1\nFV Conf   : \t16.1\t(1)\nASD Conf  : \t5.1\n"
    )
    path.write_text(f"{head}\nFRAME \tX \tY \tW \tH \n{lines}")


def test_tracks_give_the_windows_of_the_benchmark_set(shared_raw, shared_data):
    made = celebrity.read(shared_raw / "voxceleb")
    folder = read_folder(shared_data / "celebrity")

    def key(sequence):
        return sequence.group, tuple(np.round(sequence.times, 2).tolist()), tuple(sequence.marks.tolist())

    wanted = Counter(key(s) for part in (folder.corpus, folder.queries) for s in part)
    assert sum(wanted.values()) == 2501
    # Two windows differ in the order of two tracks that start in the same frame.
    assert sum((wanted & Counter(map(key, made))).values()) == 2499


def test_data_folder_of_the_raw_sample(shared_raw, tmp_path):
    counts = prepare("celebrity", shared_raw / "voxceleb", tmp_path / "c").meta["counts"]
    assert (counts["corpus"] + counts["queries"], counts["groups"], counts["marks"]) == (2501, 289, 17)


def test_frames_make_an_event_at_each_change_of_cell(tmp_path):
    corners = [(0.1, 0.1), (0.8, 0.1), (0.1, 0.8), (0.8, 0.8)]
    for video in ("a", "b"):
        rows = [(100 + n, *corners[n // 5], 0.1, 0.1) for n in range(20)]
        write_track(tmp_path, "id1", video, 1, rows)
        write_track(tmp_path, "id1", video, 2, [(200, 0.1, 0.1, 0.1, 0.1), (201, 0.1, 0.1, 0.1, 0.1)])
    made = celebrity.read(tmp_path, events=5)
    assert len(made) == 2
    assert made[0].times.tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 4.0])
    assert made[0].marks[0] == made[0].marks[4] != made[0].marks[1]
    assert len(set(made[0].marks.tolist())) == 4
    assert made.num_marks == 16
    every = celebrity.read(tmp_path, variant="frames", events=22)
    assert every.lengths.tolist() == [22, 22]
    assert every[0].group == "id1"


def test_tracks_of_several_tables_are_read_once_each(tmp_path):
    def rows(*videos):
        return HEAD + "".join(
            f"{video},{25 * n},{25 * n + 5},{n}-{n}-{n + 20}-{n + 30},25,100,100,train,{person}\n"
            for video, person in videos
            for n in range(6)
        )

    for name, videos in {
        "whole": [[("v1", 1), ("v2", "id2"), ("v3", "id2")]],
        "parts": [[("v1", 1)], [("v2", "id2"), ("v3", "id2")]],
        "common": [[("v1", 1), ("v2", "id2")], [("v2", "id2"), ("v3", "id2")]],
    }.items():
        (tmp_path / name).mkdir()
        for number, part in enumerate(videos):
            (tmp_path / name / f"{number}.csv").write_text(rows(*part))
    whole = celebrity.read(tmp_path / "whole")
    assert whole.groups.to_pylist() == ["1", "id2", "id2"]
    assert celebrity.read(tmp_path / "parts") == whole
    assert celebrity.read(tmp_path / "common") == whole


def test_boxes_in_pixels_give_the_same_cells(tmp_path):
    for name, scale in (("relative", 1), ("pixels", 1000)):
        for video in ("a", "b"):
            rows = [(n, scale * 0.05 * n, scale * 0.04 * n, scale * 0.05, scale * 0.1) for n in range(20)]
            write_track(tmp_path / name, "id1", video, 1, rows)
    relative, pixels = (celebrity.read(tmp_path / name, events=5) for name in ("relative", "pixels"))
    assert relative.to_lists() == pixels.to_lists()


def test_broken_files(tmp_path):
    table = tmp_path / "vox.csv"
    table.write_text(HEAD + "v,1,2,1-2-3,25,10,10,train,id1\n")
    with pytest.raises(DataError, match="line 2: bbox is '1-2-3'"):
        celebrity.read(tmp_path)
    for row, problem in (
        ("", "no face track is listed"),
        ("v,one,2,1-2-3-4,25,10,10,train,id1\n", "column 'start' holds text"),
        ("v,1,2,1-2-3-4,25,10,10,train,id1\nv,,2,1-2-3-4,25,10,10,train,id1\n", "'start' has 1 empty cells"),
        ("v,1,2,1-2-3-4,0,10,10,train,id1\n", "line 2: fps is not above 0"),
    ):
        table.write_text(HEAD + row)
        with pytest.raises(DataError, match=problem):
            celebrity.read(tmp_path)
    table.write_text("video_id,start\nv,1\n")
    with pytest.raises(DataError, match="no column 'end'"):
        celebrity.read(tmp_path)
    with pytest.raises(UserError, match="no variant 'frames'"):
        celebrity.read(tmp_path, variant="frames")
    table.unlink()
    with pytest.raises(DataError, match=r"expected vox-metadata\.csv"):
        celebrity.read(tmp_path)
    write_track(tmp_path, "id1", "v", 1, [(1, 2, 3, 4, "x")])
    with pytest.raises(DataError, match=r"line 8: '000001 2 3 4 x' is not FRAME"):
        celebrity.read(tmp_path)
    (tmp_path / "txt" / "id1" / "v" / "00001.txt").write_text("hello\n")
    with pytest.raises(DataError, match="no line 'FRAME X Y W H'"):
        celebrity.read(tmp_path)
