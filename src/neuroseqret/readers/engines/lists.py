"""Tables with one row per sequence and its events in list columns, whatever the columns are called.

Several Parquet formats and JSON lines come as batches of such a table. `ListLayout` knows which column is which and
turns a batch into flat arrays (`Part`), and parts into sequences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neuroseqret.data.columns import CANONICAL, in_order, is_plain_list
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.marks import as_marks
from neuroseqret.readers.engines.other_columns import as_column, names_in_sequences
from neuroseqret.readers.engines.times import as_times, unit_of
from neuroseqret.readers.engines.values import is_text, locator

EVENT_ROLES = ("times", "marks")


@dataclass(frozen=True)
class Part:
    """Some rows with their events as flat arrays."""

    lengths: np.ndarray
    times: np.ndarray
    marks: np.ndarray
    rest: dict[str, pa.Array]  # all other columns, by the names that they have in the sequences


@dataclass(frozen=True)
class ListLayout:
    """Which column is which: `roles` maps `id`, `times`, `marks`, `start`, `end`, `group` to the names in the table.

    Without `id` the rows are numbered; without `marks` every mark is 0. Columns without a role are metadata.
    `missing_ok` accepts times and marks that are null, to be repaired.
    """

    roles: Mapping[str, str]
    schema: pa.Schema
    mark_names: tuple[str, ...] | None = None
    missing_ok: bool = False

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        roles: Mapping[str, str | None],
        mark_names: Sequence[str] | None = None,
        missing_ok: bool = False,
    ) -> ListLayout:
        """Check the roles against the columns of the table; columns named `start`, `end`, `group` have these roles."""
        seen: set[str] = set()
        for name in schema.names:
            if name in seen:
                raise DataError(f"two columns are called {name!r}", remedy="rename one of them")
            seen.add(name)
        own = {role: role for role in ("start", "end", "group") if role in schema.names and role not in roles}
        chosen = {role: name for role, name in {**own, **roles}.items() if name is not None}
        for role, name in chosen.items():
            if name not in schema.names:
                found = ", ".join(schema.names)
                raise DataError(f"no column {name!r} for {role}", remedy=f"columns found: {found}")
            listed = is_list(schema.field(name).type)
            if listed != (role in EVENT_ROLES):
                wanted = "one value" if listed else "a list"
                raise DataError(
                    f"column {name!r} is {schema.field(name).type}, but {role} needs {wanted} per row",
                    remedy="map another column or rename this one",
                )
        return cls(chosen, schema, None if mark_names is None else tuple(mark_names), missing_ok)

    @property
    def names(self) -> dict[str, str]:
        """The name of each column of the table in the sequences."""
        return names_in_sequences(self.schema.names, self.roles)

    @property
    def needs_names(self) -> bool:
        """True if marks are text and no names are given to number them by."""
        marks = self.roles.get("marks")
        return self.mark_names is None and marks is not None and is_text(self.schema.field(marks).type.value_type)

    @property
    def time_type(self) -> pa.DataType:
        return self.schema.field(self.roles["times"]).type.value_type

    def part(self, batch: pa.RecordBatch, row: int) -> Part:
        """Return the events and columns of a batch whose first row is row `row` of the file."""
        rest = {}
        for source, name in self.names.items():
            if name not in EVENT_ROLES:
                column = as_column(name, batch.column(source))
                column.validate(full=True)  # otherwise text that is not UTF-8 fails much later
                rest[name] = column
        if "id" not in rest:
            rest["id"] = pa.array(np.arange(row, row + len(batch))).cast(CANONICAL["id"])
        lengths, times = self._events(batch, "times", rest["id"], row)
        if "marks" not in self.roles:
            return Part(lengths, times, np.zeros(len(times), np.int32), rest)
        mark_lengths, marks = self._events(batch, "marks", rest["id"], row)
        differ = np.flatnonzero(lengths != mark_lengths)
        if len(differ):
            raise DataError(
                f"{lengths[differ[0]]} times but {mark_lengths[differ[0]]} marks",
                sequence=_name_row(rest["id"], differ[0], row),
                remedy="give one mark per time",
            )
        return Part(lengths, times, marks, rest)

    def _events(self, batch: pa.RecordBatch, role: str, ids: pa.Array, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Return lengths and flat values of a list column."""
        column = batch.column(self.roles[role])
        if pa.types.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        if column.null_count and not self.missing_ok:
            at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"no {role}", sequence=_name_row(ids, at, row), remedy="drop the row")
        lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        locate = locator(lengths, lambda at: _name_row(ids, at, row))
        if role == "times":
            return lengths, as_times(column.flatten(), f"time ({self.roles[role]})", locate, self.missing_ok)
        what = f"mark ({self.roles[role]})"
        return lengths, as_marks(column.flatten(), what, self.mark_names, locate, self.missing_ok)

    def sequences(
        self, offsets: np.ndarray, times: np.ndarray, marks: np.ndarray, rest: Mapping[str, pa.Array]
    ) -> EventSequences:
        """Return flat arrays and other columns as sequences, without a copy."""
        cuts = pa.array(offsets)
        made = {
            **rest,
            "times": pa.LargeListArray.from_arrays(cuts, pa.array(times)),
            "marks": pa.LargeListArray.from_arrays(cuts, pa.array(marks)),
        }
        return EventSequences(in_order(pa.table(made)), self.mark_names, unit_of(self.time_type))

    def one(self, part: Part) -> EventSequences:
        """Return one part as sequences."""
        return self.sequences(np.concatenate([[0], np.cumsum(part.lengths)]), part.times, part.marks, part.rest)

    def empty_column(self, name: str) -> pa.Array:
        """Return a column without rows, by its name in the sequences."""
        if name == "id" and "id" not in self.roles:
            return pa.array([], CANONICAL["id"])
        source = next(source for source, own in self.names.items() if own == name)
        return as_column(name, pa.array([], self.schema.field(source).type))


def is_list(kind: pa.DataType) -> bool:
    return bool(is_plain_list(kind) or pa.types.is_fixed_size_list(kind))


def join_column(arrays: Sequence[pa.Array]) -> pa.Array:
    """Join the chunks of a column."""
    if len(arrays) == 1:
        return arrays[0]
    if pa.types.is_dictionary(arrays[0].type):
        return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
    return pa.concat_arrays(arrays)


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return all rows of a table as one batch."""
    columns = [join_column(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _name_row(ids: pa.Array, at: int, row: int) -> str:
    id_ = ids[int(at)].as_py()
    return id_ if id_ is not None else f"in row {row + int(at)}"
