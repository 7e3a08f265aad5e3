"""Long tables: one row per event, with the id of its sequence, its time and its mark; the engine of CSV and Parquet.

The rows of a sequence may be anywhere in the table; their order is kept, and so is the order in which ids first appear.
A further column that is constant within every sequence becomes a column of the sequences, any other a list column with
one value per event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from neuroseqret.data.columns import CANONICAL, event_values, in_order
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.marks import as_marks
from neuroseqret.readers.engines.other_columns import as_column, names_in_sequences
from neuroseqret.readers.engines.times import as_times, unit_of
from neuroseqret.readers.options import ask_for

#: Column names that are understood without a column map; the first one found is used.
CONVENTIONS = {
    "id": ("id", "seq_id", "sequence_id", "seq_idx", "user_id", "client_id", "customer_id", "case_id"),
    "times": ("time", "timestamp", "event_time", "datetime", "date", "t"),
    "marks": ("mark", "label", "event_type", "type_event", "type", "event", "activity", "category"),
}
#: The layout of a column: one value per sequence, repeated; or one value per event, for a list or large list.
SEQUENCE, LIST, LARGE_LIST = "sequence", "list", "large_list"


def find_roles(names: Sequence[str], given: Mapping[str, str | None]) -> dict[str, str]:
    """Find the columns of id, time and mark: as mapped, else by convention, else an error that asks for them."""
    roles, found = dict(given), ", ".join(names)
    for role, conventional in CONVENTIONS.items():
        known = [name for name in conventional if name in names and name not in roles.values()]
        if role not in roles and known:
            roles[role] = known[0]
    if missing := [role.removesuffix("s") for role in CONVENTIONS if role not in roles]:
        one = "; if all rows are one sequence, --column id= or {'id': None}" if "id" in missing else ""
        raise DataError(f"no column for {_listed(missing)}", remedy=f"{ask_for(*missing)}{one}; columns found: {found}")
    for role in ("start", "end", "group"):
        if role not in roles and role in names and role not in roles.values():
            roles[role] = role
    chosen = {role: name for role, name in roles.items() if name is not None}
    for role, name in chosen.items():
        if name not in names:
            raise DataError(f"no column {name!r} for {role}", remedy=f"columns found: {found}")
    if twice := next((name for name in names if list(names).count(name) > 1), None):
        raise DataError(f"two columns are called {twice!r}", remedy="rename one of them")
    return chosen


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def check_ids(table: pa.Table, roles: Mapping[str, str], first: int, name_row: Callable[[int], str]) -> None:
    """Check that every event has an id; `first` is the number of the first row, `name_row` says where a row is."""
    ids = table.column(roles["id"]) if "id" in roles else None
    if ids is not None and ids.null_count:
        row = int(np.flatnonzero(ids.is_null().to_numpy())[0])
        raise DataError(
            f"{name_row(first + row)} has no {roles['id']!r}",
            remedy="give every event the id of its sequence or repair with 'drop'",
        )


class _Groups:
    """Where the events of each sequence are: the order that brings them together, and the offsets of the sequences."""

    def __init__(self, ids: pa.Array) -> None:
        ids = as_column("id", ids)
        ids.validate(full=True)
        encoded = ids.dictionary_encode(null_encoding="encode")  # events without an id become one sequence
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        self.ids = encoded.dictionary
        self.lengths = np.bincount(codes, minlength=len(self.ids)).astype(np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        together = (np.diff(codes) >= 0).all()
        self.order = None if together else pa.array(np.argsort(codes, kind="stable"))

    def bring(self, column: pa.Array) -> pa.Array:
        """Return a column in the order of the sequences."""
        return column if self.order is None else column.take(self.order)

    def locate(self, event: int) -> tuple[str, int]:
        at = int(np.searchsorted(self.offsets, event, side="right")) - 1
        return self.ids[at].as_py(), event - int(self.offsets[at])

    def first(self, values: pa.Array) -> pa.Array:
        """Return the value at the first event of each sequence."""
        return values.take(pa.array(self.offsets[:-1]))

    def changes(self, values: pa.Array) -> np.ndarray:
        """Return the events whose value differs from that of the first event of their sequence."""
        if pa.types.is_nested(values.type):  # cannot be compared; a layout says which belong to sequences
            return np.arange(len(values))
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        codes = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return np.flatnonzero(codes != np.repeat(codes[self.offsets[:-1]], self.lengths))

    def lists(self, values: pa.Array, large: bool) -> pa.Array:
        kind, width = (pa.LargeListArray, pa.int64()) if large else (pa.ListArray, pa.int32())
        return kind.from_arrays(pa.array(self.offsets, width), values)


def _groups(table: pa.Table, roles: Mapping[str, str]) -> _Groups:
    if "id" in roles:
        return _Groups(_column(table, roles["id"]))
    return _Groups(pa.repeat("0", table.num_rows))  # all events are one sequence


def assemble(
    table: pa.Table,
    roles: Mapping[str, str],
    mark_names: Sequence[str] | None = None,
    layout: Mapping[str, str] | None = None,
    missing_ok: bool = False,
) -> EventSequences:
    """Return a long table as sequences; columns that are not in `layout` are examined.

    `missing_ok` accepts times and marks that are null, to be repaired.
    """
    groups = _groups(table, roles)
    written = groups.bring(_column(table, roles["times"]))
    times = as_times(written, f"time ({roles['times']})", groups.locate, missing_ok)
    marks = np.zeros(len(times), np.int32)
    if "marks" in roles:
        texts = groups.bring(_column(table, roles["marks"]))
        marks = as_marks(texts, f"mark ({roles['marks']})", mark_names, groups.locate, missing_ok)
    cuts = pa.array(groups.offsets)
    columns = {
        "id": groups.ids,
        "times": pa.LargeListArray.from_arrays(cuts, pa.array(times)),
        "marks": pa.LargeListArray.from_arrays(cuts, pa.array(marks)),
    }
    for source, name in names_in_sequences(table.column_names, roles).items():
        if name not in columns:
            values = groups.bring(_column(table, source))
            values.validate(full=True)
            columns[name] = _sequence_column(name, values, groups, (layout or {}).get(source))
    unit = unit_of(table.schema.field(roles["times"]).type)
    return EventSequences(in_order(pa.table(columns)), mark_names, unit)


def _sequence_column(name: str, values: pa.Array, groups: _Groups, level: str | None) -> pa.Array:
    if level in (LIST, LARGE_LIST) and name not in CANONICAL:
        return groups.lists(values, large=level == LARGE_LIST)
    changes = np.empty(0, np.int64) if level == SEQUENCE else groups.changes(values)
    if not len(changes):
        return as_column(name, groups.first(values))
    if name not in CANONICAL:
        return groups.lists(values, large=True)
    event = int(changes[0])
    sequence, position = groups.locate(event)
    raise DataError(
        f"{name} is {values[event].as_py()!r} here but {values[event - position].as_py()!r} before",
        sequence=sequence,
        position=position,
        remedy=f"give all events of a sequence the same {name}, or say columns={{{name!r}: None}} (--column {name}=)",
    )


def varying_columns(table: pa.Table, roles: Mapping[str, str]) -> set[str]:
    """Return the columns without a role that are not constant within every sequence of the table."""
    groups = _groups(table, roles)
    free = [name for name in table.column_names if name not in roles.values()]
    return {name for name in free if len(groups.changes(groups.bring(_column(table, name))))}


def whole_sequences(tables: Iterable[pa.Table], roles: Mapping[str, str]) -> Iterator[pa.Table]:
    """Yield the rows in tables of whole sequences; the rows of each sequence must be contiguous."""
    if "id" not in roles:
        raise DataError("a table without ids is one sequence", remedy="read it whole")
    id_column = roles["id"]
    seen: set[str] = set()
    held: list[pa.Table] = []
    for table in tables:
        if not table.num_rows:
            continue
        ids = as_column("id", _column(table, id_column))
        codes = ids.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False)
        last = int(np.flatnonzero(codes != codes[-1])[-1]) + 1 if (codes != codes[-1]).any() else 0
        if last == 0 and held and _last_id(held[-1], id_column) == ids[0].as_py():
            held.append(table)
            continue
        yield from _complete([*held, table.slice(0, last)], id_column, seen)
        held = [table.slice(last)]
    yield from _complete(held, id_column, seen)


def _complete(tables: list[pa.Table], id_column: str, seen: set[str]) -> Iterator[pa.Table]:
    table = pa.concat_tables(tables) if tables else None
    if table is None or not table.num_rows:
        return
    ids = as_column("id", _column(table, id_column)).unique().to_pylist()
    again = next((id_ for id_ in ids if id_ in seen), None)
    if again is not None:
        raise DataError("its rows are not contiguous", sequence=again, remedy="sort the table by id, or read it whole")
    seen.update(ids)
    yield table


def _last_id(table: pa.Table, id_column: str) -> object:
    return as_column("id", _column(table.slice(table.num_rows - 1), id_column))[0].as_py()


def explode(sequences: EventSequences, names: Mapping[str, str], lists: bool) -> tuple[pa.Table, dict[str, str]]:
    """Return the sequences as a long table under the given column names, and the layout of its columns.

    List columns with one value per event are spread over the events; other lists are repeated (`lists`) or left out.
    """
    rows = pa.array(np.repeat(np.arange(len(sequences)), sequences.lengths))
    columns: dict[str, pa.Array] = {}
    layout: dict[str, str] = {}
    flat = {"times": sequences.times, "marks": sequences.marks}
    for name in sequences.table.column_names:
        column = sequences.column(name)
        assert column is not None
        if name in flat:
            columns[names[name]] = pa.array(flat[name])
        elif (values := event_values(column, sequences.lengths)) is not None:
            columns[name] = values
            layout[name] = LARGE_LIST if pa.types.is_large_list(column.type) else LIST
        elif lists or not pa.types.is_nested(column.type):
            columns[names.get(name, name)] = column.take(rows)
            layout[name] = SEQUENCE
    return pa.table(columns), layout


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
