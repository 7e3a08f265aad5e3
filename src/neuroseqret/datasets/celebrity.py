"""Celebrity: positions of the face in interview videos, retrieval of the same person.

Download one of
- the VoxCeleb1 or VoxCeleb2 annotations of Nagrani, Chung and Zisserman (Visual Geometry Group, Oxford; CC BY 4.0 by
  its authors' page): `txt/<person>/<video>/<track>.txt`, a header (`Identity`, `Reference`, ...) and one line per
  frame, `FRAME X Y W H`, with the box relative to the frame or in pixels, 25 frames per second;
- `vox-metadata.csv` of AliaksandrSiarohin/video-preprocessing (one line per face track: `video_id, start, end, bbox,
  fps, width, height, partition, person_id`; no licence file).

With the csv, each track gives two events: its start, whose mark is one of 16 cells (quarter of the horizontal position
of the box x quarter of its height, by quantiles over all tracks), and its end, with mark 16. The position and the
height themselves, as shares of the frame, are the columns `face_x` and `face_height` of the start events. With the
frames, the mark is one of 16 cells of the picture (quarter of the horizontal x quarter of the vertical position, by
quantiles). Events are the first frame of a track and each later frame in another cell (`variant="changes"`), or every
frame (`"frames"`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pacsv

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.datasets.raw_files import Progress, find, nothing_found, number_column, text, track
from neuroseqret.datasets.recordings import Recordings, Windows, by_edges, quantile_edges
from neuroseqret.errors import DataError, UserError

COLUMNS = ("video_id", "start", "end", "bbox", "fps", "width", "height", "person_id")
POSITIVE = ("fps", "width", "height")
FRAMES_PER_SECOND = 25.0
START_NAMES = [f"track starts, x quarter {x}, size quarter {h}" for x in range(1, 5) for h in range(1, 5)]
CELL_NAMES = [f"x quarter {x}, y quarter {y}" for x in range(1, 5) for y in range(1, 5)]


def read(
    raw: Path, *, variant: str | None = None, events: int | None = None, progress: Progress | None = None
) -> EventSequences:
    """Read sequences of one video each, with at least `events` tracks (csv) or events (frames)."""
    tables = find(raw, "*.csv")
    chosen = [path for path in tables if text(path)[:200].startswith("video_id,")]
    if chosen:
        if variant not in (None, "tracks"):
            raise UserError(f"the track csv has no variant {variant!r}; frames and changes need the txt annotations")
        return _from_tracks(chosen, 5 if events is None else events)
    paths = find(raw, "*/*/*.txt")
    if not paths:
        raise nothing_found(raw, "vox-metadata.csv, or VoxCeleb's txt/<person>/<video>/<track>.txt")
    if variant not in (None, "changes", "frames"):
        raise UserError(f"celebrity has no variant {variant!r} for frames; choose changes or frames")
    default = 100 if variant == "frames" else 10
    return _from_frames(paths, variant == "frames", default if events is None else events, progress)


def _track_table(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the columns of a track csv: numbers, ids as text, and the box as `left`, `top`, `right`, `bottom`."""
    try:
        table = pacsv.read_csv(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"not a comma-separated table ({error})", file=path, remedy="download it again") from error
    if missing := [c for c in COLUMNS if c not in table.column_names]:
        raise DataError(f"no column {missing[0]!r}", file=path, remedy=f"expected {', '.join(COLUMNS)}")
    box = _boxes(table.column("bbox").to_pylist(), path)
    if not table.num_rows:
        raise DataError("no face track is listed", file=path, remedy="download it again")
    column = {c: number_column(table, c, path) for c in ("start", "end", *POSITIVE)}
    for name in POSITIVE:
        if not column[name].min() > 0:
            line = 2 + int(column[name].argmin())
            raise DataError(f"line {line}: {name} is not above 0", file=path, remedy="download it again")
    ids = {c: table.column(c).cast(pa.large_string()).to_numpy() for c in ("video_id", "person_id")}
    return {**column, **ids, **dict(zip(("left", "top", "right", "bottom"), box.T, strict=True))}


def _from_tracks(paths: list[Path], tracks: int) -> EventSequences:
    tables = [_track_table(path) for path in paths]
    column = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    across = (column["left"] + column["right"]) / 2 / column["width"]
    size = (column["bottom"] - column["top"]) / column["height"]
    cell = _cells(across, size)
    start, end = column["start"] / column["fps"], column["end"] / column["fps"]
    videos, video = np.unique(column["video_id"].astype(str), return_inverse=True)
    person = column["person_id"]
    # Some tracks are listed twice with almost equal boxes, and tables may share tracks.
    _, once = np.unique(np.column_stack([video, column["start"], column["end"]]), axis=0, return_index=True)
    once.sort()
    whole = Recordings.from_events(
        video[once], start[once], once, {"group": person[once], "source": videos[video[once]]}
    )
    windows = whole.cut(Windows(tracks, "spread"))
    # Two events per track: its start with the cell and its end with mark 16, sorted by time, starts before ends.
    row = np.repeat(np.arange(len(windows)), 2 * windows.lengths)
    track = windows.values
    times = np.column_stack([start[track], end[track]]).ravel()
    marks = np.column_stack([cell[track], np.full(len(track), len(START_NAMES), np.int32)]).ravel()
    order = np.lexsort((marks, times, row))
    times, offsets = times[order], 2 * windows.offsets
    times = times - np.repeat(times[offsets[:-1]], np.diff(offsets))
    made = Recordings(times, marks[order], offsets, windows.columns)
    sequences = made.to_sequences([*START_NAMES, "track ends"], "seconds")
    for name, values in (("face_x", across), ("face_height", size)):
        of_events = np.column_stack([values[track], np.full(len(track), np.nan)]).ravel()[order]
        lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(of_events, from_pandas=True))
        sequences = sequences.with_column(name, lists)
    return sequences


def _boxes(texts: list[str], path: Path) -> IntArray:
    """Parse `left-top-right-bottom`: (n, 4)."""
    try:
        box = np.array([str(t).split("-") for t in texts], dtype=np.int64)
    except ValueError:
        box = np.empty((0, 0), np.int64)
    if len(texts) and box.shape != (len(texts), 4):
        bad = next(i for i, t in enumerate(texts) if not re.fullmatch(r"\d+-\d+-\d+-\d+", str(t)))
        raise DataError(
            f"line {bad + 2}: bbox is {texts[bad]!r}, not left-top-right-bottom", file=path, remedy="download it again"
        )
    return box.reshape(-1, 4)


def _cells(first: FloatArray, second: FloatArray) -> npt.NDArray[np.int32]:
    """Return one of 16 cells: quarter of the first value x quarter of the second, by quantiles."""
    a, b = (by_edges(v, quantile_edges(v, 4)) for v in (first, second))
    return (4 * a + b).astype(np.int32)


def _from_frames(paths: list[Path], every_frame: bool, events: int, progress: Progress | None) -> EventSequences:
    parts, keys = [], []
    names: dict[tuple[str, str], int] = {}
    for number, path in enumerate(track(paths, progress)):
        person, video = path.parts[-3], path.parts[-2]
        rows = _frames(path)
        parts.append(np.column_stack([rows, np.full(len(rows), number)]))
        keys.append(np.full(len(rows), names.setdefault((person, video), len(names))))
    rows, video_of = np.concatenate(parts), np.concatenate(keys)
    frame, left, top, width, height, track_of = rows.T
    across, down = left + width / 2, top + height / 2
    for position, extent in ((across, left + width), (down, top + height)):
        # For boxes in pixels: the size of the frame is not in the file, so the farthest box of the video is used.
        farthest = np.zeros(len(names))
        np.maximum.at(farthest, video_of, extent)
        position /= np.where(farthest > 2, farthest, 1.0)[video_of]
    cell = _cells(across, down)
    if not every_frame:
        order = np.lexsort((frame, track_of))
        first = np.ones(len(order), bool)
        first[1:] = (track_of[order][1:] != track_of[order][:-1]) | (cell[order][1:] != cell[order][:-1])
        kept = np.sort(order[first])
        frame, cell, video_of = frame[kept], cell[kept], video_of[kept]
    persons, videos = (np.array(part) for part in zip(*names, strict=True))
    whole = Recordings.from_events(
        video_of, frame / FRAMES_PER_SECOND, cell, {"group": persons[video_of], "source": videos[video_of]}
    )
    return whole.cut(Windows(events, "spread")).to_sequences(CELL_NAMES, "seconds")


def _frames(path: Path) -> FloatArray:
    """Read the lines under `FRAME X Y W H` as numbers: (frames, 5)."""
    lines = text(path).splitlines()
    head = next((n for n, line in enumerate(lines) if line.split()[:1] == ["FRAME"]), None)
    if head is None:
        raise DataError("no line 'FRAME X Y W H'", file=path, remedy="use VoxCeleb's annotation files")
    body = [line.split() for line in lines[head + 1 :] if line.strip()]
    try:
        rows = np.array(body, dtype=np.float64).reshape(len(body), 5)
    except ValueError:
        bad = next(n for n, cells in enumerate(body) if not _five_numbers(cells))
        problem = f"line {head + 2 + bad}: {' '.join(body[bad])!r} is not FRAME X Y W H"
        raise DataError(problem, file=path, remedy="download it again") from None
    if not len(rows):
        raise DataError("no frames under 'FRAME X Y W H'", file=path, remedy="download it again")
    return rows


def _five_numbers(cells: list[str]) -> bool:
    try:
        return len([float(c) for c in cells]) == 5
    except ValueError:
        return False
