"""`EventSequences`: many event sequences as ragged Arrow columns, and `EventSequence`, one of them.

A sequence is a list of events (t_1, x_1), ..., (t_n, x_n), t_1 <= ... <= t_n, with times t as float64 and
marks x as integers from 0, seen through an observation window [start, end]. The events of all sequences lie
in two flat arrays; sequence i owns `times[offsets[i]:offsets[i + 1]]`. What the integers mean (`mark_names`)
and what one unit of time is (`time_unit`) travels with the data.

The columns live in one Arrow table, so that a slice, Parquet and the store copy nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import pandas
    import polars

TIMES_TYPE = pa.large_list(pa.float64())
MARKS_TYPE = pa.large_list(pa.int32())
STRING = pa.large_string()
#: The columns that mean something to the library, in canonical order; any other column is metadata.
CANONICAL = {
    "id": STRING,
    "times": TIMES_TYPE,
    "marks": MARKS_TYPE,
    "start": pa.float64(),
    "end": pa.float64(),
    "group": STRING,
}

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EventSequence:
    """One sequence: views on the arrays of the batch that it came from."""

    id: str
    times: FloatArray
    marks: npt.NDArray[np.int32]
    start: float | None = None
    end: float | None = None
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventSequence):
            return NotImplemented
        return EventSequences.of(self) == EventSequences.of(other)

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal by value, so not hashable

    def __repr__(self) -> str:
        unit = f" {self.time_unit}" if self.time_unit else ""
        span = f", {self.times[0]:g} to {self.times[-1]:g}{unit}" if len(self) else ""
        group = f", group {self.group!r}" if self.group is not None else ""
        return f"EventSequence({self.id!r}, {len(self)} events{span}{group})"


class EventSequences(Sequence[EventSequence]):
    """A batch of event sequences; immutable.

    Make one with `neuroseqret.read`, `from_lists`, `from_arrays`, `from_arrow`, `from_pandas` or `from_polars`.
    Index it with an integer (one `EventSequence`), a slice, a boolean mask or an array of rows.
    """

    def __init__(
        self,
        table: pa.Table,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
    ) -> None:
        """Wrap a table whose columns have the types of `CANONICAL`; no validation (see `from_arrow`)."""
        self._table = table if all(c.num_chunks == 1 for c in table.columns) else _one_chunk(table)
        self.mark_names = tuple(mark_names) if mark_names is not None else None
        self.time_unit = time_unit

    # ---------------------------------------------------------------- make

    @classmethod
    def from_arrays(
        cls,
        times: npt.ArrayLike,
        marks: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        ids: Sequence[str] | None = None,
        starts: npt.ArrayLike | None = None,
        ends: npt.ArrayLike | None = None,
        groups: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
        validate: bool = True,
    ) -> EventSequences:
        """From flat `times` and `marks` and the `offsets` (n + 1 of them) that cut them into sequences."""
        flat_times = np.ascontiguousarray(times, dtype=np.float64)
        flat_marks = _int32_marks(marks)
        cuts = np.ascontiguousarray(offsets, dtype=np.int64)
        _check_offsets(cuts, len(flat_times), len(flat_marks))
        n = len(cuts) - 1
        columns: dict[str, pa.Array] = {
            "id": pa.array([str(i) for i in range(n)] if ids is None else ids, STRING),
            "times": pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(flat_times)),
            "marks": pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(flat_marks)),
        }
        if starts is not None:
            columns["start"] = pa.array(np.asarray(starts, dtype=np.float64))
        if ends is not None:
            columns["end"] = pa.array(np.asarray(ends, dtype=np.float64))
        if groups is not None:
            columns["group"] = pa.array(groups, STRING)
        for name, values in (metadata or {}).items():
            columns[name] = values if isinstance(values, pa.Array) else pa.array(values)
        for name, column in columns.items():
            if len(column) != n:
                raise DataError(f"column {name!r} has {len(column)} rows, the offsets make {n} sequences")
        made = cls(pa.table(columns), mark_names, time_unit)
        return made.validate() if validate else made

    @classmethod
    def from_lists(
        cls,
        sequences: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
        **columns: Any,
    ) -> EventSequences:
        """From (times, marks) pairs; further arguments as in `from_arrays`.

        >>> EventSequences.from_lists([([0.0, 1.5], [0, 1]), ([2.0], [1])], ids=["a", "b"])
        EventSequences(2 sequences, 3 events, 2 marks, lengths 1 to 2)
        """
        pairs = [(np.asarray(t, dtype=np.float64), np.asarray(x)) for t, x in sequences]
        for row, (t, x) in enumerate(pairs):
            if t.ndim != 1 or t.shape != x.shape:
                raise DataError(
                    f"times have shape {t.shape}, marks {x.shape}", sequence=row, remedy="give one mark per time"
                )
        lengths = np.fromiter((len(t) for t, _ in pairs), dtype=np.int64, count=len(pairs))
        times = np.concatenate([t for t, _ in pairs]) if pairs else np.empty(0)
        marks = np.concatenate([x for _, x in pairs]) if pairs else np.empty(0, np.int32)
        return cls.from_arrays(times, marks, np.concatenate([[0], np.cumsum(lengths)]), **columns)

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
        validate: bool = True,
    ) -> EventSequences:
        """From an Arrow table with at least the columns `id`, `times` and `marks`."""
        columns = {}
        for name in [*CANONICAL, *(c for c in table.column_names if c not in CANONICAL)]:
            if name in table.column_names:
                columns[name] = _as_canonical(name, table.column(name))
            elif name in ("id", "times", "marks"):
                found = ", ".join(table.column_names)
                raise DataError(f"no column {name!r}", remedy=f"name it in the column map (columns found: {found})")
        made = cls(pa.table(columns), mark_names, time_unit)
        lengths = np.diff(made._flat("marks")[0])
        if not np.array_equal(lengths, made.lengths):
            row = int(np.flatnonzero(lengths != made.lengths)[0])
            raise DataError(
                f"{made.lengths[row]} times but {lengths[row]} marks",
                sequence=made.ids[row],
                remedy="give one mark per time",
            )
        return made.validate() if validate else made

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, **options: Any) -> EventSequences:
        """From a data frame with one row a sequence; options as in `from_arrow`."""
        return cls.from_arrow(pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(), **options)

    @classmethod
    def from_polars(cls, frame: polars.DataFrame, **options: Any) -> EventSequences:
        """From a data frame with one row a sequence; options as in `from_arrow`."""
        return cls.from_arrow(frame.to_arrow(), **options)

    @classmethod
    def of(cls, sequences: EventSequence | EventSequences | Iterable[EventSequence]) -> EventSequences:
        """One sequence or many, as a batch: what every function that takes sequences calls first."""
        if isinstance(sequences, EventSequences):
            return sequences
        rows = [sequences] if isinstance(sequences, EventSequence) else list(sequences)
        if not rows:
            return cls.from_lists([])
        first = rows[0]
        optional = {
            f"{name}s": [getattr(r, name) for r in rows]
            for name in ("start", "end", "group")
            if all(getattr(r, name) is not None for r in rows)
        }
        return cls.from_lists(
            [(r.times, r.marks) for r in rows],
            ids=[r.id for r in rows],
            metadata={k: [r.metadata.get(k) for r in rows] for k in first.metadata},
            mark_names=first.mark_names,
            time_unit=first.time_unit,
            validate=False,
            **optional,
        )

    @classmethod
    def concat(cls, batches: Iterable[EventSequences]) -> EventSequences:
        """All sequences of the batches in order; their mark names and time units must agree."""
        parts = list(batches)
        if not parts:
            return cls.from_lists([])
        first = parts[0]
        for part in parts[1:]:
            if part.mark_names != first.mark_names:
                raise DataError(f"mark names differ: {first.mark_names} and {part.mark_names}", remedy="map the marks")
            if part.time_unit != first.time_unit:
                raise DataError(f"time units differ: {first.time_unit} and {part.time_unit}", remedy="convert one")
        tables = [p._table for p in parts]
        return cls(pa.concat_tables(tables, promote_options="default"), first.mark_names, first.time_unit)

    # ---------------------------------------------------------------- look

    @property
    def table(self) -> pa.Table:
        """The Arrow table behind, columns in canonical order, metadata last."""
        return self._table

    def _flat(self, name: str) -> tuple[IntArray, npt.NDArray[Any]]:
        """Absolute offsets and the whole values array of a list column; a slice shares the values."""
        column = self._table.column(name).chunk(0)
        return column.offsets.to_numpy(), column.values.to_numpy(zero_copy_only=True)

    @cached_property
    def times(self) -> FloatArray:
        """Times of all events, flat: (events,) float64."""
        offsets, values = self._flat("times")
        return values[offsets[0] : offsets[-1]]

    @cached_property
    def marks(self) -> npt.NDArray[np.int32]:
        """Marks of all events, flat: (events,) int32."""
        offsets, values = self._flat("marks")
        return values[offsets[0] : offsets[-1]]

    @cached_property
    def offsets(self) -> IntArray:
        """Where each sequence begins in `times` and `marks`: (n + 1,) int64, from 0."""
        offsets, _ = self._flat("times")
        return offsets if offsets[0] == 0 else offsets - offsets[0]

    @property
    def lengths(self) -> IntArray:
        """Number of events of each sequence: (n,)."""
        return np.diff(self.offsets)

    @property
    def ids(self) -> pa.LargeStringArray:
        return self._table.column("id").chunk(0)

    def column(self, name: str) -> pa.Array | None:
        """A column by name, or None where the data has none."""
        return self._table.column(name).chunk(0) if name in self._table.column_names else None

    @property
    def starts(self) -> FloatArray | None:
        column = self.column("start")
        return None if column is None else column.to_numpy(zero_copy_only=False)

    @property
    def ends(self) -> FloatArray | None:
        column = self.column("end")
        return None if column is None else column.to_numpy(zero_copy_only=False)

    @property
    def groups(self) -> pa.LargeStringArray | None:
        return self.column("group")

    @property
    def metadata(self) -> pa.Table:
        """The columns that the library does not interpret."""
        return self._table.drop_columns([c for c in CANONICAL if c in self._table.column_names])

    @cached_property
    def num_marks(self) -> int:
        """Size of the vocabulary of marks: the names' number, else one more than the largest mark."""
        if self.mark_names is not None:
            return len(self.mark_names)
        return int(self.marks.max()) + 1 if len(self.marks) else 0

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)

    def fingerprint(self) -> str:
        """A hash of the content (ids, events, windows, groups, meaning of marks and time), for caches."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((self.mark_names, self.time_unit, self.ids.to_pylist())).encode())
        for array in (self.offsets, self.times, self.marks, self.starts, self.ends):
            digest.update(b"|" if array is None else np.ascontiguousarray(array).tobytes())
        for name in ("group", "source", "split"):
            column = self.column(name)
            digest.update(repr(None if column is None else column.to_pylist()).encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> EventSequence: ...
    @overload
    def __getitem__(self, key: slice | npt.NDArray[Any] | Sequence[int] | Sequence[bool]) -> EventSequences: ...
    def __getitem__(self, key: Any) -> EventSequence | EventSequences:
        if isinstance(key, (int, np.integer)):
            return self._row(range(len(self))[int(key)])
        if isinstance(key, slice):
            begin, stop, step = key.indices(len(self))
            if step == 1:
                return self._like(self._table.slice(begin, max(stop - begin, 0)))
            return self[np.arange(begin, stop, step)]
        rows = np.asarray(key)
        if rows.dtype == bool:
            if rows.shape != (len(self),):
                raise IndexError(f"a mask of {rows.shape} does not fit {len(self)} sequences")
            rows = np.flatnonzero(rows)
        elif len(rows) == 0:
            rows = rows.astype(np.int64)
        elif not np.issubdtype(rows.dtype, np.integer):
            raise TypeError(f"sequences are selected by integers, slices or masks, not by {rows.dtype}")
        if len(rows) and (rows.min() < -len(self) or rows.max() >= len(self)):
            raise IndexError(f"row {rows.min() if rows.min() < -len(self) else rows.max()} of {len(self)} sequences")
        return self._like(self._table.take(pa.array(np.where(rows < 0, rows + len(self), rows))))

    def _row(self, row: int) -> EventSequence:
        begin, stop = self.offsets[row], self.offsets[row + 1]
        rest = {name: self._table.column(name)[row].as_py() for name in self._table.column_names[3:]}
        return EventSequence(
            id=self.ids[row].as_py(),
            times=self.times[begin:stop],
            marks=self.marks[begin:stop],
            start=rest.pop("start", None),
            end=rest.pop("end", None),
            group=rest.pop("group", None),
            metadata=rest,
            mark_names=self.mark_names,
            time_unit=self.time_unit,
        )

    def __iter__(self) -> Iterator[EventSequence]:
        return (self._row(row) for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal in every column, bit by bit (NaN equals NaN in metadata), in names and in unit."""
        if not isinstance(other, EventSequences):
            return NotImplemented
        mine, theirs = self._table, other._table
        return (
            (self.mark_names, self.time_unit) == (other.mark_names, other.time_unit)
            and mine.schema.equals(theirs.schema)
            and all(_same(a.chunk(0), b.chunk(0)) for a, b in zip(mine.columns, theirs.columns, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]  # equal by value and large, so not hashable

    def __repr__(self) -> str:
        lengths = self.lengths
        parts = [f"{len(self):,} sequences", f"{int(lengths.sum()):,} events", f"{self.num_marks} marks"]
        if len(self):
            parts.append(f"lengths {lengths.min()} to {lengths.max()}")
        if self.groups is not None:
            parts.append(f"{len(self.groups.unique()):,} groups")
        if self.time_unit:
            parts.append(f"time in {self.time_unit}")
        return f"EventSequences({', '.join(parts)})"

    # ---------------------------------------------------------------- change (each gives a new batch)

    def _like(self, table: pa.Table) -> EventSequences:
        return EventSequences(table, self.mark_names, self.time_unit)

    def with_column(self, name: str, values: Any) -> EventSequences:
        """The same sequences with a column added or replaced."""
        wanted = CANONICAL.get(name)
        column = values if isinstance(values, pa.Array) else pa.array(values, wanted)
        names = self._table.column_names
        if name in names:
            return self._like(self._table.set_column(names.index(name), name, column))
        table = self._table.append_column(name, column)
        order = [c for c in CANONICAL if c in table.column_names]
        return self._like(table.select(order + [c for c in table.column_names if c not in CANONICAL]))

    def without_columns(self, *names: str) -> EventSequences:
        """The same sequences without the given columns (those that are there)."""
        return self._like(self._table.drop_columns([n for n in names if n in self._table.column_names]))

    def with_meaning(
        self, mark_names: Sequence[str] | None = None, time_unit: str | None = None
    ) -> EventSequences:
        """The same data with mark names or a time unit attached."""
        return EventSequences(self._table, mark_names or self.mark_names, time_unit or self.time_unit)

    def windows(
        self,
        events: int | None = None,
        duration: float | None = None,
        step: float | None = None,
        min_events: int = 1,
    ) -> EventSequences:
        """Cut into windows by event count or by duration; see `neuroseqret.windows.cut`."""
        from neuroseqret.windows import cut

        return cut(self, events=events, duration=duration, step=step, min_events=min_events)

    def validate(self, file: Any = None) -> EventSequences:
        """Self if flawless, else a `DataError` for the first flaw; see `neuroseqret.validation`."""
        from neuroseqret.validation import validate

        return validate(self, file)

    # ---------------------------------------------------------------- give away

    def to_arrow(self) -> pa.Table:
        """The Arrow table, no copy."""
        return self._table

    def to_lists(self) -> list[tuple[list[float], list[int]]]:
        """(times, marks) pairs as plain lists."""
        cuts = self.offsets[1:-1]
        return [
            (t.tolist(), x.tolist())
            for t, x in zip(np.split(self.times, cuts), np.split(self.marks, cuts), strict=True)
        ][: len(self)]

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame with one row a sequence."""
        try:
            import pandas  # noqa: F401
        except ImportError as error:
            raise MissingExtraError("pandas", "frames", "to_pandas") from error
        return self._table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """A data frame with one row a sequence."""
        try:
            import polars
        except ImportError as error:
            raise MissingExtraError("polars", "frames", "to_polars") from error
        return polars.DataFrame(polars.from_arrow(self._table))


# -------------------------------------------------------------------- helpers


def _one_chunk(table: pa.Table) -> pa.Table:
    """Every column as exactly one chunk; a column without rows gets an empty one."""
    return pa.table(
        {
            name: column.chunk(0)
            if column.num_chunks == 1
            else pa.concat_arrays(column.chunks)
            if column.num_chunks
            else pa.array([], column.type)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


def _as_canonical(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    wanted = CANONICAL.get(name)
    if wanted is None:
        return column
    if name in ("times", "marks") and column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DataError(f"row {row} has no {name}", remedy="drop the row")
    try:
        cast = column if column.type == wanted else column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {name!r} is {column.type}, not {wanted} ({error})", remedy="convert the column"
        ) from error
    if name in ("times", "marks") and any(chunk.flatten().null_count for chunk in cast.chunks):
        raise DataError(f"column {name!r} has null values inside its lists", remedy="drop those events")
    return cast


def _int32_marks(marks: npt.ArrayLike) -> npt.NDArray[np.int32]:
    values = np.asarray(marks)
    if values.dtype == np.int32:
        return np.ascontiguousarray(values)
    if not len(values):
        return np.empty(0, np.int32)
    if values.dtype.kind not in "iufb":
        raise DataError(f"marks are {values.dtype}, not integers", remedy="number the marks from 0")
    as_int = values.astype(np.int32)
    wrong = np.flatnonzero(as_int != values)
    if len(wrong):
        raise DataError(f"mark {values[wrong[0]]} is not a 32-bit integer", remedy="number the marks from 0")
    return as_int


def _check_offsets(offsets: IntArray, times: int, marks: int) -> None:
    if times != marks:
        raise DataError(f"{times} times but {marks} marks", remedy="give one mark per time")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != times or (np.diff(offsets) < 0).any():
        raise DataError(f"offsets must rise from 0 to the number of events, {times}")


def _same(mine: pa.Array, theirs: pa.Array) -> bool:
    if mine.equals(theirs):
        return True
    if not pa.types.is_floating(mine.type):
        return False
    a, b = mine.to_numpy(zero_copy_only=False), theirs.to_numpy(zero_copy_only=False)
    return mine.is_null().equals(theirs.is_null()) and np.array_equal(a, b, equal_nan=True)
