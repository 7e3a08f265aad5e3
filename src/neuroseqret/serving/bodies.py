"""Sequences of JSON bodies to `EventSequences`, with marks and times as the index knows them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Rows
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.data.durations import seconds_in
from neuroseqret.data.meaning import Meaning, UnknownMarks
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.validation import validate_events
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.times import WRITE_DATES, as_dates, as_times, time_type
from neuroseqret.serving import request_shapes

Given = request_shapes.Sequence | request_shapes.EventsQuery
_LARGEST = 1 << 31
NUMBERS = pa.large_list(pa.float64())  # one per event


def sequences_of(
    given: Rows[Given], meaning: Meaning, unknown_marks: UnknownMarks, reads: Rows[str] = ()
) -> EventSequences:
    """Return sequences that were given as JSON, with marks numbered as the index's; flaws raise a `DataError`.

    `reads` are the values of events that the index's model reads: every sequence must have them.
    """
    names, clock = _Names(meaning), _Clock(meaning.time_unit)
    times, marks, starts, ends = [], [], [], []
    for one in given:
        if len(one.times) != len(one.marks):
            problem = f"{len(one.times)} times but {len(one.marks)} marks"
            raise DataError(problem, sequence=one.id, remedy="give one mark per time")
        times.append(clock.times(one.times, one.id))
        marks.append(names.numbers(one.marks, one.id))
        starts.append(clock.time(one.start, one.id))
        ends.append(clock.time(one.end, one.id))
    full = [one if isinstance(one, request_shapes.Sequence) else None for one in given]
    made = EventSequences.from_arrays(
        np.concatenate(times),
        np.concatenate(marks),
        np.cumsum([0, *map(len, times)]),
        ids=[one.id for one in given],
        starts=_column(starts, pa.float64()),
        ends=_column(ends, pa.float64()),
        groups=_column([None if one is None else one.group for one in full], pa.large_string()),
        metadata=_metadata([(one and one.metadata) or {} for one in full], [one.id for one in given])
        | _values(given, reads),
        mark_names=names.known,
        validate=False,
    )
    made = meaning.apply(validate_events(made), unknown_marks)  # queries may have the same id; a writer checks ids
    return made.with_meaning(time_unit=meaning.time_unit)  # as stored sequences have it: they can be joined


class _Names:
    """Numbers for marks: those of the index, and further ones for names that it does not know."""

    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning
        own = meaning.mark_names if meaning.mark_names is not None else map(str, range(meaning.marks or 0))
        self.number_of = {name: number for number, name in enumerate(own)}
        self.own = len(self.number_of)
        # As in `Meaning.apply`: where a name is a number, a number is a name.
        self.by_name = meaning.mark_names is not None and any(name.isdecimal() for name in meaning.mark_names)

    def numbers(self, marks: Rows[int | str], sequence: str) -> np.ndarray:
        plain = np.array(marks)
        if plain.dtype.kind == "i" and not self.by_name and plain.min() >= 0 and plain.max() < self.own:
            return plain.astype(np.int32)
        found = [self._number(mark) for mark in marks]
        if min(found) < 0 or max(found) >= _LARGEST:
            position = next(at for at, mark in enumerate(found) if not 0 <= mark < _LARGEST)
            problem = f"mark {marks[position]!s:.40} is not a number from 0 to {_LARGEST - 1}"
            raise DataError(problem, sequence=sequence, position=position, remedy="give names, or numbers from 0")
        return np.array(found, np.int32)

    def _number(self, mark: int | str) -> int:
        if isinstance(mark, int) and not self.by_name and (0 <= mark < self.own or not self.own or mark < 0):
            return mark
        return self.number_of.setdefault(str(mark), len(self.number_of))

    @property
    def known(self) -> tuple[str, ...] | None:
        """The names for `EventSequences`; None if the index has none and none was needed."""
        if self.meaning.mark_names is None and len(self.number_of) == self.own:
            return None
        return tuple(self.number_of)


class _Clock:
    """Times as float64 in the index's unit: numbers as they are, dates counted from 1970."""

    def __init__(self, unit: str | None) -> None:
        self.unit = unit
        self.seconds = 1.0 if unit is None else seconds_in(unit)

    def times(self, given: Rows[float | int | str], sequence: str) -> np.ndarray:
        plain = np.array(given)
        if plain.dtype.kind in "fi":
            return plain.astype(np.float64)
        if not any(isinstance(time, str) for time in given):
            try:
                return np.array(given, np.float64)
            except OverflowError as error:
                raise DataError("a time is too large", sequence=sequence, remedy="use another unit of time") from error
        texts = [str(time) for time in given]
        kind = time_type(texts[0].strip())
        try:
            if pa.types.is_floating(kind):
                return np.array([float(text) for text in texts])
            column = as_dates(pa.chunked_array([pa.array(texts)]), kind, "time", 0).combine_chunks()
            since = as_times(column, "time", lambda event: (sequence, event))
        except (ValueError, DataError, pa.ArrowException) as error:
            raise DataError(
                f"times are neither numbers nor dates ({texts[0]!r:.40} ...)", sequence=sequence, remedy=WRITE_DATES
            ) from error
        if self.seconds is None:
            problem = f"times are dates, and the index counts time in {self.unit}"
            raise DataError(problem, sequence=sequence, remedy="give numbers")
        return since / self.seconds

    def time(self, given: float | int | str | None, sequence: str) -> float | None:
        return None if given is None else float(self.times([given], sequence)[0])


def _column(values: list[Any], kind: pa.DataType) -> pa.Array | None:
    return None if all(value is None for value in values) else pa.array(values, kind)


def _metadata(rows: list[dict[str, Any]], ids: list[str]) -> dict[str, pa.Array]:
    """Return columns of metadata; values are text, numbers, true or false."""
    found = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        for value, id in zip(values, ids, strict=True):
            if isinstance(value, (list, dict)):
                problem = f"metadata {name[:60]!r} is a list or a mapping"
                remedy = "give text, a number, true or false; put numbers of events into 'values'"
                raise DataError(problem, sequence=id, remedy=remedy)
        try:
            found[name] = pa.array(_numbers_alike(values))
        except (pa.ArrowException, OverflowError) as error:
            problem = f"metadata {name[:60]!r} has values of several types, or beyond 64 bits"
            raise DataError(problem, remedy="give values of one type") from error
    return found


def _values(given: Rows[Given], reads: Rows[str]) -> dict[str, pa.Array]:
    """Return columns with one number per event."""
    if not reads and all(one.values is None for one in given):
        return {}
    names = dict.fromkeys(name for one in given for name in one.values or {})
    for one in given:
        own, others = one.values or {}, (isinstance(one, request_shapes.Sequence) and one.metadata) or {}
        if twice := names.keys() & others.keys():
            problem = f"{min(twice)[:60]!r} is in 'metadata', and for some sequences in 'values'"
            raise DataError(problem, sequence=one.id, remedy="give it in one of them")
        for name, numbers in own.items():
            if len(numbers) != len(one.times):
                problem = f"{len(numbers)} values {name[:60]!r} but {len(one.times)} times"
                raise DataError(problem, sequence=one.id, remedy="give one number per event, null where it is missing")
        if missing := [name for name in reads if name not in own and name not in others]:
            problem = f"no values {missing[0]!r}, which the index's model reads"
            raise DataError(problem, sequence=one.id, remedy="give 'values' with one number per event")
    return {name: pa.array([(one.values or {}).get(name) for one in given], NUMBERS) for name in names}


def _numbers_alike(values: list[Any]) -> list[Any]:
    """Return whole numbers as floats where some of the numbers are floats."""
    if any(isinstance(value, float) for value in values):
        return [float(value) if type(value) is int else value for value in values]
    return values


def check_length(lengths: Iterable[int], most: int) -> None:
    """Raise a `DataError` if a query has too many events."""
    longest = max(lengths, default=0)
    if longest > most:
        raise DataError(
            f"a query has {longest:,} events; at most {most:,} are allowed", remedy="search with a part of it"
        )
