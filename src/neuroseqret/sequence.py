"""`EventSequence`: one event sequence, a row of a batch or made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret import columns as arrow
from neuroseqret.columns import CANONICAL, FloatArray
from neuroseqret.errors import DataError


@dataclass(frozen=True, eq=False)
class EventSequence:
    """One sequence: views on the arrays of the batch that it came from, or made by hand."""

    id: str
    times: FloatArray
    marks: npt.NDArray[np.int32]
    start: float | None = None
    end: float | None = None
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    #: Arrow types of the batch that the sequence came from, None if it was made by hand.
    schema: pa.Schema | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "times", arrow.flat_times(self.times))
        object.__setattr__(self, "marks", arrow.flat_marks(self.marks))
        if len(self.times) != len(self.marks):
            raise DataError(
                f"{len(self.times)} times but {len(self.marks)} marks",
                sequence=self.id,
                remedy="give one mark per time",
            )

    def __len__(self) -> int:
        return len(self.times)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EventSequence):
            return NotImplemented
        from neuroseqret.sequences import EventSequences

        return EventSequences(*from_rows([self])) == EventSequences(*from_rows([other]))

    __hash__ = None  # type: ignore[assignment]  # arrays inside: equal by value, so not hashable

    def __repr__(self) -> str:
        unit = f" {self.time_unit}" if self.time_unit else ""
        span = f", {self.times[0]:g} to {self.times[-1]:g}{unit}" if len(self) else ""
        group = f", group {self.group!r}" if self.group is not None else ""
        return f"EventSequence({self.id!r}, {len(self)} events{span}{group})"

    def column_types(self) -> dict[str, pa.DataType | None]:
        """The columns beyond id and events, with their Arrow types where they are known."""
        if self.schema is not None:
            return {column.name: column.type for column in self.schema if column.name not in arrow.REQUIRED}
        given = [name for name in ("start", "end", "group") if getattr(self, name) is not None]
        return {**{name: CANONICAL[name] for name in given}, **dict.fromkeys(self.metadata)}


def from_rows(rows: Sequence[EventSequence]) -> tuple[pa.Table, tuple[str, ...] | None, str | None]:
    """What makes a batch of single sequences: the table, the mark names, the time unit.

    The table has the columns that any of them has, with the types that they came with; null where one has none.
    """
    types: dict[str, pa.DataType | None] = {}
    for row in rows:
        types = {**row.column_types(), **types}
    values = {"id": [row.id for row in rows]} | {
        name: [getattr(row, name) if name in CANONICAL else row.metadata.get(name) for row in rows] for name in types
    }
    columns = {name: arrow.as_column(name, values[name], types.get(name)) for name in values}
    table = arrow.table_of(
        *arrow.joined((row.times, row.marks) for row in rows),
        {name: column for name, column in columns.items() if name in CANONICAL},
        {name: column for name, column in columns.items() if name not in CANONICAL},
    )
    return table, *arrow.one_meaning([(row.mark_names, row.time_unit) for row in rows])
