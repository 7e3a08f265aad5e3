from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets import sports
from neuroseqret.datasets.prepare import prepare
from neuroseqret.errors import DataError
from neuroseqret.readers.data_folder import read_folder


def write_texts(folder, segments):
    for action, lines in segments.items():
        (folder / f"{action}.txt").write_text(
            "".join(f"{video} {start:.2f} {end:.2f}\n" for video, start, end in lines)
        )


def test_named_json_gives_the_windows_of_the_benchmark_set(shared_raw, shared_data):
    with pytest.warns(UserWarning, match=r"read, without 1 videos of the others \(video_test_0001292\)"):
        made = sports.read(shared_raw / "multithumos")
    assert len(made) == 1200
    assert made.mark_names == tuple(sports.MARKS)
    assert len(sports.MARKS) == 27
    folder = read_folder(shared_data / "sports")

    def keys(sequences, marks):
        # Actions that begin together are in no order.
        return Counter(
            (
                s.group,
                s.metadata["source"],
                tuple(np.round(s.times, 2).tolist()),
                *(sorted(zip(s.times.round(2).tolist(), s.marks.tolist(), strict=True)) if marks else ()),
            )
            for s in sequences
        )

    wanted = EventSequences.concat([folder.corpus, folder.queries.without_columns("split")])
    # All are there (one window more, of TennisSwing, makes no group) ...
    assert sum((keys(wanted, marks=False) & keys(made, marks=False)).values()) == len(wanted) == 1199
    # ... and but for 50, where a window ends between actions that begin together, with the same marks.
    assert sum((keys(wanted, marks=True) & keys(made, marks=True)).values()) == 1149


@pytest.mark.filterwarnings("ignore:.*annotations in several forms")
def test_data_folder_of_the_raw_sample(shared_raw, tmp_path):
    made = prepare("sports", shared_raw / "multithumos", tmp_path / "sports")
    counts = made.meta["counts"]
    assert (counts["corpus"] + counts["queries"], counts["events"], counts["groups"]) == (1199, 26706, 18)
    assert 0.15 < counts["queries"] / 1199 < 0.25
    pairs = {(s.group, s.metadata["source"]) for s in made.corpus}
    assert not pairs & {(s.group, s.metadata["source"]) for s in made.queries}
    assert made.meta["mark_names"] == sports.MARKS
    assert made.meta["time_unit"] == "seconds"


def test_numbered_json_and_texts_say_the_same_as_named(tmp_path):
    segments = {
        "Diving": [("v1", 0.5, 1.0)],
        "CliffDiving": [("v1", 0.5, 1.0)],
        "Jump": [("v1", 2.0, 3.0), ("v1", 0.0, 1.0)],
        "Fall": [("v1", 2.5, 3.0)],
        "BasketballPass": [("v1", 2.6, 3.0)],
    }
    read = []
    for form in ("text", "numbered", "named"):
        folder = tmp_path / form
        folder.mkdir()
        if form == "text":
            write_texts(folder, segments)
            (folder / "class_list.txt").write_text("1 BaseballPitch\n")
        elif form == "numbered":
            actions = [[sports.CLASSES.index(a) + 1, s, e] for a, rows in segments.items() for _, s, e in rows]
            (folder / "x.json").write_text(json.dumps({"v1": {"subset": "testing", "actions": actions}}))
        else:
            notes = [{"label": a, "segment": [s, e]} for a, rows in segments.items() for _, s, e in rows]
            (folder / "x.json").write_text(json.dumps({"database": {"v1": {"annotations": notes}}}))
        read.append(sports.read(folder, events=3))
    assert read[0] == read[1] == read[2]
    only = read[0][0]
    assert (only.group, only.times.tolist()) == ("CliffDiving", [0.0, 2.0, 2.5])
    assert [sports.MARKS[m] for m in only.marks] == ["Jump", "Jump", "Fall"]
    assert len(sports.read(tmp_path / "text", variant="all", events=6)[0]) == 6


def test_all_files_of_a_form_are_read_and_their_common_segments_once(tmp_path):
    def write_json(name, *videos):
        actions = {"actions": [[1, 0.0, 1.0], [21, 2.0, 3.0], [21, 2.0, 3.0], [22, 4.0, 5.0]]}
        (tmp_path / name).write_text(json.dumps(dict.fromkeys(videos, actions)))

    write_json("all.json", "v1", "v2", "v3")
    whole = sports.read(tmp_path, events=3)
    assert whole.column("source").to_pylist() == ["v1", "v2", "v3"]
    write_json("test.json", "v2", "v3")
    assert sports.read(tmp_path, events=3) == whole
    write_json("all.json", "v1", "v2")
    assert sports.read(tmp_path, events=3) == whole
    write_texts(tmp_path, {"Walk": [("v1", 0.0, 1.0)], "Diving": [("v1", 0.0, 1.0)], "Sit": [("v2", 0.0, 1.0)]})
    with pytest.warns(UserWarning, match=r"read, without 1 videos of the others \(v3\)"):
        assert len(sports.read(tmp_path, events=1)) == 1


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", '{"v": ', "not JSON"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"v": {"subset": 1}}', "not MultiTHUMOS"),
        ("a.json", '{"database": {}}', "no action is annotated"),
        ("Walk.txt", "", "no action is annotated"),
        ("a.json", '{"v": {"actions": [[66, 0, 1]]}}', "unknown action 66"),
        ("Walk.txt", "v 1.0\n", "line 1: 2 columns"),
        ("Walk.txt", "v 1.0 2.0\nv x 2.0\n", "line 2: the start is 'x'"),
        ("notes.md", "", "expected MultiTHUMOS"),
    ],
)
def test_broken_files(tmp_path, name, content, problem):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=problem) as caught:
        sports.read(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
