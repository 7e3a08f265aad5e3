"""ifl-tpp's torch file: a dict with `sequences` (of `arrival_times`, `marks`, `t_start`, `t_end`) and `num_marks`.

`torch.save` writes pickles, so the file is read by `safe_pickle` and never by torch itself. Both layouts of torch are
known: the zip archive and the older chain of pickles. `id` and `group` are read if a sequence has them.
"""

from __future__ import annotations

import io
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import damage_as_data_error
from neuroseqret.readers.engines.marks import mark_count, numbered_names
from neuroseqret.readers.engines.times import not_rounded
from neuroseqret.readers.options import Options
from neuroseqret.readers.pickles.opt_in import require_opt_in
from neuroseqret.readers.pickles.torch_file import load
from neuroseqret.storage.files import new_file


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences; those without `marks` have only mark 0."""
    require_opt_in(path, options)
    with damage_as_data_error(path, "a torch file", "export it again"):
        return _sequences(load(io.BytesIO(Path(path).read_bytes())), options)


def _sequences(content: Any, options: Options) -> EventSequences:
    rows = content.get("sequences") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise DataError("not a dict with a list of 'sequences'", remedy="export it again")
    ids = [str(row.get("id", number)) for number, row in enumerate(rows)]
    times, marks = [], []
    for id_, row in zip(ids, rows, strict=True):
        t = _times(row.get("arrival_times"), "arrival_times", id_)
        x = _numbers(row["marks"], "marks", id_) if row.get("marks") is not None else np.zeros(len(t), np.int32)
        if len(t) != len(x):
            raise DataError(f"{len(t)} times but {len(x)} marks", sequence=id_, remedy="give one mark per time")
        times.append(t)
        marks.append(x)
    columns: dict[str, Any] = {}
    for key, name in (("t_start", "starts"), ("t_end", "ends")):
        known = [row.get(key) is not None for row in rows]
        if any(known):
            given = [row[key] if there else 0.0 for row, there in zip(rows, known, strict=True)]
            bounds = [_times([bound], key, id_)[0] for id_, bound in zip(ids, given, strict=True)]
            columns[name] = pa.array(np.array(bounds), mask=~np.array(known))
    if any("group" in row for row in rows):
        groups = [None if row.get("group") is None else str(row["group"]) for row in rows]
        columns["groups"] = pa.array(groups, pa.large_string())
    return EventSequences.from_arrays(
        np.concatenate(times),
        np.concatenate(marks),
        np.concatenate([[0], np.cumsum([len(t) for t in times])]),
        ids=ids,
        mark_names=options.mark_names or numbered_names([content.get("num_marks")]),
        validate=False,
        **columns,
    )


def _times(values: Any, what: str, id_: str) -> np.ndarray:
    times = _numbers(values, what, id_).astype(np.float64)
    return not_rounded(times, values, what, lambda event: (id_, event))


def _numbers(values: Any, what: str, id_: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        array = np.empty((0, 0))
    if array.ndim == 1 and (array.dtype.kind in "biuf" or not len(array)):
        return array
    raise DataError(f"{what} is not a list of numbers", sequence=id_, remedy="export it again")


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write ids, times, marks, windows (from first to last event if unknown) and groups, by `torch.save`."""
    import torch

    rows = []
    for sequence in sequences:
        bounds = (sequence.times[0], sequence.times[-1]) if len(sequence) else (0.0, 0.0)
        row = {
            "id": sequence.id,
            "arrival_times": sequence.times.tolist(),
            "marks": sequence.marks.tolist(),
            "t_start": float(bounds[0] if sequence.start is None else sequence.start),
            "t_end": float(bounds[1] if sequence.end is None else sequence.end),
        }
        rows.append(row if sequences.groups is None else {**row, "group": sequence.group})
    with new_file(path) as temporary, temporary.open("wb") as out:
        torch.save({"sequences": rows, "num_marks": mark_count(sequences)}, out)
