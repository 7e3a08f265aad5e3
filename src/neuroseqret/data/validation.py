"""Find what is wrong with a batch of sequences, and say where it is and how to repair it.

Flaws are: NaN or infinite times, decreasing times, negative or empty marks, marks without a name, empty sequences,
missing or duplicate ids, and observation windows that do not cover their events. Equal times are allowed, also with
equal marks. A window whose start or end is null is allowed; it means unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.durations import is_date, moment
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.errors import DataError

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Flaw:
    """One kind of flaw: where it occurs first and how often it occurs."""

    kind: str
    problem: str
    remedy: str
    sequence: str
    position: int | None
    count: int

    def error(self, file: str | PathLike[str] | None = None) -> DataError:
        return DataError(self.problem, file=file, sequence=self.sequence, position=self.position, remedy=self.remedy)


def validate(sequences: EventSequences, file: str | PathLike[str] | None = None) -> EventSequences:
    """Return the sequences, or raise a `DataError` for the first flaw found."""
    for flaw in find_flaws(sequences):
        raise flaw.error(file)
    return sequences


def validate_events(sequences: EventSequences) -> EventSequences:
    """Return the sequences, or raise a `DataError` for the first flaw of an event; ids and windows are not checked."""
    for flaw in event_flaws(sequences):
        raise flaw.error()
    return sequences


def find_flaws(sequences: EventSequences) -> Iterator[Flaw]:
    """Yield every kind of flaw in the batch, once, with its first place and its count."""
    yield from event_flaws(sequences)
    yield from _row_flaws(sequences)


def _when(sequences: EventSequences, event: int) -> str:
    """Return the time of an event as a number, and as a date if it is one."""
    time, unit = float(sequences.times[event]), sequences.time_unit
    return f"{time:.17g}" + (f" ({moment(time, unit)} UTC)" if is_date([time], unit) else "")


def event_flaws(sequences: EventSequences) -> Iterator[Flaw]:
    """Yield the flaws of events; ids and windows are not looked at."""
    times, marks = sequences.times, sequences.marks

    def flaw(kind: str, events: IntArray, problem: Callable[[int], str], remedy: str) -> Iterator[Flaw]:
        if len(events):
            event = int(events[0])
            row = int(np.searchsorted(sequences.offsets, event, side="right")) - 1
            position = event - int(sequences.offsets[row])
            yield Flaw(kind, problem(event), remedy, _name(sequences, row), position, len(events))

    yield from flaw(
        "time not finite",
        np.flatnonzero(~np.isfinite(times)),
        lambda e: f"time is {times[e]}",
        "drop the event or repair with 'drop'",
    )
    falls = times[1:] < times[:-1]
    borders = sequences.offsets[1:-1]  # from one sequence to the next, time may go back
    falls[borders[(borders > 0) & (borders < len(times))] - 1] = False
    yield from flaw(
        "time decreases",
        np.flatnonzero(falls) + 1,
        lambda e: f"time {_when(sequences, e)} is before the previous event's {_when(sequences, e - 1)}",
        "sort the events by time or repair with 'sort'",
    )
    del falls  # frees memory for the next check, which needs as much
    negative = np.flatnonzero(marks < 0)
    if sequences.mark_names is not None and (marks[negative] == -1).all():  # marks with names are not numbered by users
        yield from flaw("empty mark", negative, lambda e: "mark is empty", "fill it in or repair with 'drop'")
    else:
        yield from flaw(
            "negative mark",
            negative,
            lambda e: "mark is -1 or empty" if marks[e] == -1 else f"mark is {marks[e]}",
            "number marks from 0 or repair with 'drop'",
        )
    if sequences.mark_names is not None:
        known = len(sequences.mark_names)
        yield from flaw(
            "mark out of range",
            np.flatnonzero(marks >= known),
            lambda e: f"mark {marks[e]} has no name; there are {known} names (0 to {known - 1})",
            "name every mark or repair with 'drop'",
        )


def _row_flaws(sequences: EventSequences) -> Iterator[Flaw]:
    ids = sequences.ids

    def flaw(
        kind: str, rows: IntArray, problem: Callable[[int], str], remedy: str, where: int | None = None
    ) -> Iterator[Flaw]:
        if len(rows):
            row = int(rows[0])
            position = None if where is None else where % max(int(sequences.lengths[row]), 1)
            yield Flaw(kind, problem(row), remedy, _name(sequences, row), position, len(rows))

    yield from flaw(
        "missing id",
        np.flatnonzero(~has_id(ids)),
        lambda r: "the id is missing",
        "give every sequence an id or repair with 'drop'",
    )
    yield from flaw(
        "empty sequence",
        np.flatnonzero(sequences.lengths == 0),
        lambda r: "no events",
        "drop the sequence or repair with 'drop'",
    )
    yield from flaw(
        "duplicate id",
        np.flatnonzero(~first_occurrences(ids)),
        lambda r: "the id occurs more than once",
        "make ids unique or repair with 'deduplicate'",
    )
    first, last = sequences.first_and_last()
    if (starts := sequences.starts) is not None:
        yield from flaw(
            "window starts late",
            np.flatnonzero(wrong_bound(sequences, "start")),
            lambda r: f"the window starts at {starts[r]:.17g}, its first event is at {first[r]:.17g}",
            "widen the window or repair with 'clip'",
            where=0,
        )
    if (ends := sequences.ends) is not None:
        yield from flaw(
            "window ends early",
            np.flatnonzero(wrong_bound(sequences, "end")),
            lambda r: f"the window ends at {ends[r]:.17g}, its last event is at {last[r]:.17g}",
            "widen the window or repair with 'clip'",
            where=-1,
        )


def _name(sequences: EventSequences, row: int) -> str:
    return sequences.ids[row].as_py() or f"in row {row}"


def wrong_bound(sequences: EventSequences, name: str) -> BoolArray:
    """Return the rows whose window start or end is not finite or does not cover the events: (n,) bool; null is fine."""
    column = sequences.column(name)
    if column is None:
        return np.zeros(len(sequences), bool)
    bound = column.to_numpy(zero_copy_only=False)
    first, last = sequences.first_and_last()
    outside = first < bound if name == "start" else last > bound
    return (sequences.lengths > 0) & column.is_valid().to_numpy(zero_copy_only=False) & (outside | ~np.isfinite(bound))


def has_id(ids: pa.Array) -> BoolArray:
    return pc.not_equal(ids, "").fill_null(False).to_numpy(zero_copy_only=False)


def _all_different(ids: pa.Array, parts: int = 8) -> bool:
    """Return True if no id occurs twice, empty ids included; quick and small, as this is the usual case.

    Ids are compared in parts, divided by their last byte: a table of all ids at once would need more memory than any
    other step of reading and checking a file.
    """
    _, offsets, letters = ids.buffers()
    if letters is None or not letters.size or ids.null_count:
        return False
    ends = np.frombuffer(offsets, np.int64)[ids.offset + 1 : ids.offset + len(ids) + 1]
    part_of = np.frombuffer(letters, np.uint8)[np.maximum(ends - 1, 0)] % parts
    return all(len(part.unique()) == len(part) for part in (ids.filter(part_of == i) for i in range(parts)))


def first_occurrences(ids: pa.Array) -> BoolArray:
    """Return True for rows whose id no earlier row has, and for rows without an id."""
    if _all_different(ids):
        return np.ones(len(ids), bool)
    codes = ids.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
    first = np.zeros(len(ids), bool)
    first[np.unique(codes, return_index=True)[1]] = True
    return first | ~has_id(ids)
