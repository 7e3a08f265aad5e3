"""The Georgia Tech pickle of NHP, THP and many others: a dict with `dim_process` and the sequences of each split.

`train`, `dev` and `test` are lists of sequences; a sequence is a list of dicts with `time_since_start` and
`type_event`. The id of a sequence is its split and number (`train-0`), and its split becomes a column.
"""

from __future__ import annotations

import pickle
from itertools import chain
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
from neuroseqret.readers.engines.values import locator
from neuroseqret.readers.options import Options
from neuroseqret.readers.pickles import safe_pickle
from neuroseqret.readers.pickles.opt_in import require_opt_in
from neuroseqret.storage.files import new_file

TIME, MARK = "time_since_start", "type_event"
SPLITS = {"train": "train", "dev": "validation", "test": "test"}
#: Other names of the validation split.
_OTHER_SPLITS = dict.fromkeys(("valid", "val", "validation"), "validation")


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences: those of `train`, then `dev` and `test`, then those under other keys."""
    require_opt_in(path, options)
    with damage_as_data_error(path, "a pickle", "export it again"), Path(path).open("rb") as stream:
        return _sequences(safe_pickle.load(stream), options)


def _sequences(content: Any, options: Options) -> EventSequences:
    more = [name for name in content if _holds_sequences(name, content)] if isinstance(content, dict) else []
    if not more and not (isinstance(content, dict) and any(content.get(name) for name in SPLITS)):
        raise DataError("not a dict with sequences under 'train', 'dev' or 'test'", remedy="export it again")
    lists: list[list[Any]] = []
    ids, splits = [], []
    for name, split in (SPLITS | {name: _OTHER_SPLITS.get(name, str(name)) for name in more}).items():
        found = content.get(name)
        if found is not None and not (isinstance(found, list) and all(isinstance(events, list) for events in found)):
            raise DataError(f"{name!r} is not a list of sequences", remedy="export it again")
        lists += found or []
        ids += [f"{name}-{number}" for number in range(len(found or []))]
        splits += [split] * len(found or [])
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    marks, written = _values(lists, ids, MARK), _values(lists, ids, TIME)
    times = not_rounded(np.asarray(written, np.float64), written, TIME, locator(lengths, ids.__getitem__))
    names = options.mark_names or numbered_names([content.get("dim_process")])
    return EventSequences.from_arrays(
        times,
        np.asarray(marks),
        np.concatenate([[0], np.cumsum(lengths)]),
        ids=ids,
        metadata={"split": pa.array(splits, pa.string())},
        mark_names=names,
        validate=False,
    )


def _holds_sequences(name: Any, content: dict[Any, Any]) -> bool:
    """Return True for another key that holds sequences."""
    found = content[name] if name not in SPLITS and isinstance(content[name], list) else []
    return any(isinstance(events, list) and events and isinstance(events[0], dict) for events in found)


def _values(lists: list[list[Any]], ids: list[str], key: str) -> list[Any]:
    """Return one number of every event, flat."""
    try:
        values = [event[key] for event in chain.from_iterable(lists)]
        array = np.asarray(values)
        if array.ndim == 1 and array.dtype.kind in "biuf":
            return values
    except (TypeError, KeyError, ValueError, IndexError):
        pass
    for id_, events in zip(ids, lists, strict=True):
        for position, event in enumerate(events):
            if not isinstance(event, dict) or not _is_number(event.get(key)):
                what = f"{key} is {event.get(key)!r}" if isinstance(event, dict) else f"an event is {event!r:.40}"
                raise DataError(what, sequence=id_, position=position, remedy="give every event a number")
    raise DataError(f"{key} is not always a number", remedy="export it again")


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write times and marks, divided by the column `split` if there is one, else all under `train`."""
    column = sequences.column("split")
    splits = ["train"] * len(sequences) if column is None else column.to_pylist()
    keys = {split: name for name, split in SPLITS.items()}
    content: dict[str, Any] = {"dim_process": mark_count(sequences), **{name: [] for name in SPLITS}}
    for sequence, split in zip(sequences, splits, strict=True):
        name = keys.get(split)
        if name is None:
            raise DataError(f"split is {split!r}", sequence=sequence.id, remedy=f"use {', '.join(keys)}")
        gaps = np.diff(sequence.times, prepend=sequence.times[:1])
        content[name].append(
            [
                {TIME: time, "time_since_last_event": gap, MARK: mark}
                for time, gap, mark in zip(sequence.times.tolist(), gaps.tolist(), sequence.marks.tolist(), strict=True)
            ]
        )
    with new_file(path) as temporary, temporary.open("wb") as out:
        pickle.dump(content, out, protocol=4)
