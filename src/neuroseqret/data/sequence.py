"""`EventSequence`: one event sequence, either a row of a batch or made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data import columns as arrow
from neuroseqret.data.columns import FloatArray
from neuroseqret.data.durations import span
from neuroseqret.data.equality import same_tables
from neuroseqret.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class EventSequence:
    """One event sequence; a row of a batch shares the arrays of the batch."""

    id: str
    times: FloatArray
    marks: npt.NDArray[np.int32]
    start: float | None = None
    end: float | None = None
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    #: The table and row that the sequence came from, None if it was made by hand.
    origin: tuple[pa.Table, int] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", arrow.flat_times(self.times))
        object.__setattr__(self, "marks", arrow.flat_marks(self.marks))
        if len(self.times) != len(self.marks):
            raise DataError(
                f"{len(self.times)} times but {len(self.marks)} marks",
                sequence=self.id,
                remedy="give one mark per time",
            )

    def __getstate__(self) -> dict[str, Any]:
        # Pickle only this row, not the whole table that it came from.
        origin = None if self.origin is None else (self.origin[0].take([self.origin[1]]), 0)
        return {**self.__dict__, "origin": origin}

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventSequence):
            return NotImplemented
        if (self.id, self.mark_names, self.time_unit) != (other.id, other.mark_names, other.time_unit):
            return False
        mine, theirs = batch_table([self]), batch_table([other])
        return same_tables(mine, theirs)

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal by value, so not hashable

    def __repr__(self) -> str:
        when = f", {span(float(self.times[0]), float(self.times[-1]), self.time_unit)}" if len(self) else ""
        group = f", group {self.group!r}" if self.group is not None else ""
        return f"EventSequence({self.id!r}, {_count(len(self), 'event')}{when}{group})"

    def _repr_html_(self) -> str:
        from neuroseqret.data.timelines import colours_of, legend, svg

        colours = colours_of([self])
        return f"<div>{escape(repr(self))}<br>{svg(self, colours)}<br>{legend([self], colours)}</div>"

    def plot(self) -> Figure:
        """Draw the sequence as a time line; return a Matplotlib figure."""
        from neuroseqret.data.timelines import figure, heading

        return figure([self], [self.id], heading(self))


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def batch_table(rows: Sequence[EventSequence]) -> pa.Table:
    """Return the table of a batch of single sequences; a column that a sequence lacks is null there."""
    origins = [row.origin for row in rows if row.origin is not None]
    if not origins:
        return _table_by_hand(rows)
    table = origins[0][0]
    if len(origins) == len(rows) and all(other is table for other, _ in origins):
        return table.slice(origins[0][1], 1) if len(rows) == 1 else table.take([row for _, row in origins])
    tables = [_table_by_hand([row]) if row.origin is None else row.origin[0].slice(row.origin[1], 1) for row in rows]
    return arrow.joined_tables(tables)


def _table_by_hand(rows: Sequence[EventSequence]) -> pa.Table:
    columns: dict[str, Any] = {"id": [row.id for row in rows]}
    for name in ("start", "end", "group"):
        values = [getattr(row, name) for row in rows]
        columns[name] = None if all(value is None for value in values) else values
    names = dict.fromkeys(name for row in rows for name in row.metadata)
    metadata = {name: [row.metadata.get(name) for row in rows] for name in names}
    return arrow.table_of(*arrow.joined_events((row.times, row.marks) for row in rows), columns, metadata)
