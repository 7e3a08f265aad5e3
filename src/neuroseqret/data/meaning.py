"""Sequences in the terms of a model: text marks are numbered file by file, and a model knows its own numbers only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError


def in_terms_of(
    sequences: EventSequences, learned: Mapping[str, Any], file: str | PathLike[str] | None = None
) -> EventSequences:
    """The sequences with their marks numbered as a model's, by name; a mark that it never met is an error.

    `learned` is the configuration of a model or an index: `mark_names`, `marks` (how many), `time_unit`, each None or
    missing where it is not known. Marks without names are taken by number, unless the model has numbers as names:
    then a number is a name too. A file with some of the model's marks is fine, in whatever order it has them.
    """
    unit = learned.get("time_unit")
    if None not in (unit, sequences.time_unit) and unit != sequences.time_unit:
        raise DataError(
            f"times are in {sequences.time_unit}, the model's in {unit}",
            file=file,
            remedy="convert the times, or 'neuroseqret data convert --time-unit' if only the unit's name is wrong",
        )
    names = _names(learned)
    if names is None or sequences.mark_names == names:
        return sequences
    given, place = np.unique(sequences.marks, return_inverse=True)
    number = {name: number for number, name in enumerate(names)}
    called = [_called(int(mark), sequences.mark_names, names) for mark in given]
    new = np.array([number.get(name, -1) for name in called], np.int32)
    if len(unknown := np.flatnonzero(new < 0)):
        event = int(np.argmax(np.isin(place.ravel(), unknown)))
        row = int(np.searchsorted(sequences.offsets, event, side="right")) - 1
        raise DataError(
            f"mark {called[place.ravel()[event]]!r} is unknown to the model, which knows {_few(names)}",
            file=file,
            sequence=sequences.ids[row].as_py(),
            position=event - int(sequences.offsets[row]),
            remedy="leave such events out, or 'neuroseqret fit' a model to data that has them",
        )
    table = sequences.table if np.array_equal(new, given) else _with_marks(sequences, new[place.ravel()])
    return EventSequences(table, learned.get("mark_names"), sequences.time_unit)


def _names(learned: Mapping[str, Any]) -> tuple[str, ...] | None:
    """The model's names of its marks, their numbers where it has none, None where nothing is known of them."""
    if learned.get("mark_names") is not None:
        return tuple(learned["mark_names"])
    marks = learned.get("marks")
    return tuple(map(str, range(marks))) if isinstance(marks, int) else None


def _called(mark: int, own: Sequence[str] | None, names: Sequence[str]) -> str:
    """What a file calls a mark: by its own name, else by number, which is the model's own or one of its names."""
    if own is not None:
        return own[mark]
    by_name = mark >= len(names) or any(name.isdecimal() for name in names)
    return str(mark) if by_name else names[mark]


def _with_marks(sequences: EventSequences, marks: np.ndarray) -> pa.Table:
    table = sequences.table
    column = pa.LargeListArray.from_arrays(pa.array(sequences.offsets), pa.array(marks))
    return table.set_column(table.column_names.index("marks"), "marks", column)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", ... ({len(names)})" if len(names) > 8 else "")
