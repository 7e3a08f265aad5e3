"""`EventSequences`: many event sequences as ragged Arrow columns.

A sequence is a list of events (t_1, x_1), ..., (t_n, x_n), t_1 <= ... <= t_n, with times t as float64 and marks x as
integers from 0, seen through an observation window [start, end]. The events of all sequences are stored in two flat
arrays; sequence i owns `times[offsets[i]:offsets[i + 1]]`. What the integers mean (`mark_names`) and what one unit of
time is (`time_unit`) is part of the data.

All columns are in one Arrow table, so that slices, Parquet and the store copy nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data import columns as arrow
from neuroseqret.data import equality, stored_meaning
from neuroseqret.data.columns import CANONICAL, STRING, FloatArray, IntArray
from neuroseqret.data.durations import is_date, span
from neuroseqret.data.event_columns import EventColumns
from neuroseqret.data.frames import to_pandas, to_polars
from neuroseqret.data.sequence import EventSequence, batch_table

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

__all__ = ["CANONICAL", "STRING", "EventSequence", "EventSequences", "FloatArray", "IntArray"]


class EventSequences(EventColumns, Sequence[EventSequence]):
    """A batch of event sequences; immutable.

    Make one with `neuroseqret.read`, `from_lists`, `from_arrays`, `from_arrow`, `from_pandas` or `from_polars`.
    Index it with an integer (one `EventSequence`), a slice, a boolean mask or an array of rows.
    """

    # ---------------------------------------------------------------- make

    @classmethod
    def from_arrays(
        cls,
        times: npt.ArrayLike,
        marks: npt.ArrayLike,
        offsets: npt.ArrayLike,
        *,
        ids: Any = None,
        starts: npt.ArrayLike | None = None,
        ends: npt.ArrayLike | None = None,
        groups: Any = None,
        metadata: Mapping[str, Any] | None = None,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
        validate: bool = True,
    ) -> EventSequences:
        """Make a batch from flat `times` and `marks` and the `offsets` (n + 1 of them) that divide them into sequences.

        Columns are lists, NumPy or Arrow arrays. Without `ids` the sequences are numbered. Arrays of the right type are
        not copied.
        """
        columns = {"id": ids, "start": starts, "end": ends, "group": groups}
        table = arrow.table_of(times, marks, offsets, columns, metadata or {})
        made = cls(table, mark_names, time_unit)
        return made.validate() if validate else made

    @classmethod
    def from_lists(
        cls,
        sequences: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
        **columns: Any,
    ) -> EventSequences:
        """Make a batch from (times, marks) pairs; further arguments as in `from_arrays`.

        >>> EventSequences.from_lists([([0.0, 1.5], [0, 1]), ([2.0], [1])], ids=["a", "b"])
        EventSequences(2 sequences, 3 events, 2 marks, lengths 1 to 2)
        """
        return cls.from_arrays(*arrow.joined_events(sequences), **columns)

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
        validate: bool = True,
    ) -> EventSequences:
        """Make a batch from an Arrow table with at least the columns `id`, `times` and `marks`.

        Unless they are given, mark names and time unit are those that `to_arrow` stored in the schema.
        """
        names, unit = stored_meaning.meaning_of(table)
        made = cls(
            arrow.canonical_table(table),
            names if mark_names is None else mark_names,
            unit if time_unit is None else time_unit,
        )
        return made.validate() if validate else made

    @classmethod
    def from_pandas(cls, frame: pandas.DataFrame, **options: Any) -> EventSequences:
        """Make a batch from a data frame with one row per sequence; options as in `from_arrow`.

        `neuroseqret.read` takes any frame.
        """
        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        meaning = {key: frame.attrs[key] for key in ("mark_names", "time_unit") if key in frame.attrs}
        return cls.from_arrow(table, **{**meaning, **options})

    @classmethod
    def from_polars(cls, frame: polars.DataFrame, **options: Any) -> EventSequences:
        """Make a batch from a data frame with one row per sequence; options as in `from_arrow`."""
        return cls.from_arrow(frame.to_arrow(), **options)

    @classmethod
    def of(cls, sequences: EventSequence | EventSequences | Iterable[EventSequence]) -> EventSequences:
        """Return one sequence or many as a batch; every function that takes sequences calls this first.

        Sequences made by hand are checked for flaws; those of a batch were checked when the batch was made.
        """
        if isinstance(sequences, EventSequences):
            return sequences
        from neuroseqret.data.validation import validate_events

        rows = [sequences] if isinstance(sequences, EventSequence) else list(sequences)
        made = cls(batch_table(rows), *stored_meaning.one_meaning([(row.mark_names, row.time_unit) for row in rows]))
        return made if all(row.origin is not None for row in rows) else validate_events(made)

    @classmethod
    def concat(cls, batches: Iterable[EventSequence | EventSequences]) -> EventSequences:
        """Join batches or single sequences in order; a column that a batch lacks is null there.

        Mark names and time units must agree. Repeated ids are not checked here; `validate` finds them.
        """
        parts = [cls.of(batch) for batch in batches]
        if not parts:
            return cls.from_lists([])
        names, unit = stored_meaning.one_meaning([(p.mark_names, p.time_unit) for p in parts])
        return cls(arrow.joined_tables([p._table for p in parts]), names, unit)

    # ---------------------------------------------------------------- inspect

    def fingerprint(self) -> str:
        """Return a hash of the content (ids, events, windows, groups, mark names, time unit), for caches."""
        return equality.fingerprint(self._table, self.mark_names, self.time_unit)

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrow pickles whole buffers, so a small view is copied first. Cached properties are not pickled.
        view = self._table.get_total_buffer_size() > 2 * self.nbytes
        table = self._table.take(np.arange(len(self))) if view else self._table
        return EventSequences, (table, self.mark_names, self.time_unit)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> EventSequence: ...
    @overload
    def __getitem__(self, key: slice | npt.NDArray[Any] | Sequence[int] | Sequence[bool]) -> EventSequences: ...
    def __getitem__(self, key: Any) -> EventSequence | EventSequences:
        if isinstance(key, (int, np.integer)):
            return self._row(range(len(self))[int(key)])
        if isinstance(key, slice):
            begin, stop, step = key.indices(len(self))
            if step == 1 and begin == 0 and stop == len(self):
                return self  # immutable, and what it has cached stays
            if step == 1:
                return self._like(self._table.slice(begin, max(stop - begin, 0)))
            return self[np.arange(begin, stop, step)]
        return self._like(self._table.take(pa.array(arrow.selected_rows(key, len(self)))))

    def _row(self, row: int) -> EventSequence:
        begin, stop = self.offsets[row], self.offsets[row + 1]
        rest = {name: self._table.column(name)[row].as_py() for name in self._table.column_names[3:]}
        made = EventSequence(
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
        object.__setattr__(made, "origin", (self._table, row))
        return made

    def __iter__(self) -> Iterator[EventSequence]:
        return (self._row(row) for row in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Return True if all columns (null equals null, NaN equals NaN), mark names and time unit are equal."""
        if not isinstance(other, EventSequences):
            return NotImplemented
        same_meaning = (self.mark_names, self.time_unit) == (other.mark_names, other.time_unit)
        return same_meaning and equality.same_tables(self._table, other._table)

    __hash__ = None  # type: ignore[assignment]  # large and equal by value, so not hashable

    def __repr__(self) -> str:
        lengths = self.lengths
        counted = ((len(self), "sequence"), (int(lengths.sum()), "event"), (self.num_marks, "mark"))
        parts = [f"{number:,} {thing}{'' if number == 1 else 's'}" for number, thing in counted]
        if len(self):
            parts.append(f"lengths {lengths.min()} to {lengths.max()}")
        if self.groups is not None:
            number = len(self.groups.drop_null().unique())
            parts.append(f"{number:,} group{'' if number == 1 else 's'}")
        if self.time_unit:
            parts.append(f"time in {self.time_unit}")
        if len(self.times):
            first, last = (float(edge) for edge in (np.nanmin(self.times), np.nanmax(self.times)))
            if is_date([first, last], self.time_unit):
                parts.append(f"{span(first, last, self.time_unit)} UTC")
        return f"EventSequences({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from neuroseqret.data.timelines import table_of

        return table_of(self)

    def plot(self, most: int = 20) -> Figure:
        """Draw the first sequences as time lines, at most so many; return a Matplotlib figure."""
        from neuroseqret.data.timelines import figure

        rows = list(self[:most])
        title = f"{len(self):,} sequences" if len(rows) == len(self) else f"the first {most} of {len(self):,} sequences"
        return figure(rows, [row.id for row in rows], title)

    # ---------------------------------------------------------------- change (each returns a new batch)

    def _like(self, table: pa.Table) -> EventSequences:
        return EventSequences(table, self.mark_names, self.time_unit)

    def with_column(self, name: str, values: Any) -> EventSequences:
        """Return the same sequences with a column added or replaced."""
        return self._like(arrow.canonical_table(arrow.with_column(self._table, name, values)))

    def without_columns(self, *names: str) -> EventSequences:
        """Return the same sequences without the given columns; names that do not occur are ignored."""
        return self._like(self._table.drop_columns([n for n in names if n in self._table.column_names]))

    def with_meaning(self, mark_names: Sequence[str] | None = None, time_unit: str | None = None) -> EventSequences:
        """Return the same data with other mark names or another time unit."""
        return EventSequences(
            self._table,
            self.mark_names if mark_names is None else mark_names,
            self.time_unit if time_unit is None else time_unit,
        )

    def windows(
        self,
        events: int | None = None,
        duration: float | None = None,
        step: float | None = None,
        min_events: int = 1,
    ) -> EventSequences:
        """Cut into windows by event count or by duration; see `neuroseqret.data.windows.cut`."""
        from neuroseqret.data.windows import cut

        return cut(self, events=events, duration=duration, step=step, min_events=min_events)

    def validate(self, file: Any = None) -> EventSequences:
        """Return the batch itself, or raise a `DataError` for its first flaw; see `neuroseqret.data.validation`."""
        from neuroseqret.data.validation import validate

        return validate(self, file)

    # ---------------------------------------------------------------- convert

    def to_arrow(self) -> pa.Table:
        """Return the Arrow table without a copy, with mark names and time unit in the metadata of its schema."""
        return stored_meaning.with_meaning(self._table, self.mark_names, self.time_unit)

    def to_lists(self) -> list[tuple[list[float], list[int]]]:
        """Return (times, marks) pairs as plain lists."""
        cuts = self.offsets[1:-1]
        return [
            (t.tolist(), x.tolist())
            for t, x in zip(np.split(self.times, cuts), np.split(self.marks, cuts), strict=True)
        ][: len(self)]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a data frame with one row per sequence, with mark names and time unit in its `attrs`.

        Times and marks are NumPy arrays; metadata columns keep their Arrow types, so that nothing is lost.
        """
        return to_pandas(self)

    def to_polars(self) -> polars.DataFrame:
        """Return a data frame with one row per sequence."""
        return to_polars(self)
