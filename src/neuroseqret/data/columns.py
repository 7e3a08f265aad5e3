"""The Arrow columns behind `EventSequences`: their types, their order, and the conversion of other columns to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import DataError

TIMES_TYPE = pa.large_list(pa.float64())
MARKS_TYPE = pa.large_list(pa.int32())
STRING = pa.large_string()
#: The columns that the library interprets, in canonical order; any other column is metadata.
CANONICAL = {
    "id": STRING,
    "times": TIMES_TYPE,
    "marks": MARKS_TYPE,
    "start": pa.float64(),
    "end": pa.float64(),
    "group": STRING,
}
REQUIRED = ("id", "times", "marks")

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def one_chunk(table: pa.Table) -> pa.Table:
    """Return the table with exactly one chunk per column, empty if there are no rows."""
    if all(column.num_chunks == 1 for column in table.columns):
        return table
    return pa.table(
        [pa.concat_arrays(c.chunks) if c.num_chunks else pa.array([], c.type) for c in table.columns],
        names=table.column_names,
    )


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """Return `array.to_numpy()`, without a copy if there are no nulls.

    `to_numpy` gives up Python's lock four times. A search would do so twenty times, and with other threads about, each
    time may be a wait.
    """
    data = None if array.null_count else array.buffers()[1]
    if data is None:
        return array.to_numpy(zero_copy_only=False)
    kind = np.dtype(array.type.to_pandas_dtype())
    found = np.frombuffer(data, kind, len(array), array.offset * kind.itemsize)
    found.flags.writeable = False
    return found


def in_order(table: pa.Table) -> pa.Table:
    """Return the table with its columns in canonical order, then metadata in the given order."""
    known = [name for name in CANONICAL if name in table.column_names]
    return table.select(known + [name for name in table.column_names if name not in CANONICAL])


def canonical_table(table: pa.Table) -> pa.Table:
    """Return the table with the types and order of `CANONICAL`; raise a `DataError` if a column cannot be converted."""
    names = table.column_names
    for name in REQUIRED:
        if name not in names:
            raise DataError(
                f"no column {name!r}",
                remedy=f"read it with neuroseqret.read and say columns={{...}} (columns found: {', '.join(names)})",
            )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"column {twice!r} occurs more than once", remedy="rename one of them")
    columns = {name: _cast(name, column) for name, column in zip(names, table.columns, strict=True)}
    made = one_chunk(in_order(pa.table(columns)))
    _check_events(made)
    return made


def _cast(name: str, column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return the column in its canonical type; text in metadata becomes large text, so that batches can be joined."""
    wanted = CANONICAL.get(name)
    if wanted is None and (pa.types.is_string(column.type) or pa.types.is_string_view(column.type)):
        wanted = STRING
    if wanted is None or column.type == wanted:
        return column
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {name!r} is {column.type}, not {wanted} ({error})", remedy="convert the column"
        ) from error


def _check_events(table: pa.Table) -> None:
    """Check that every row has times and as many marks, none of them null."""
    ids, times, marks = (table.column(name).chunk(0) for name in REQUIRED)
    for name, column in (("times", times), ("marks", marks)):
        if column.null_count:
            row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"no {name}", sequence=ids[row].as_py() or f"in row {row}", remedy="drop the row")
        events = column.flatten()
        if events.null_count:
            event = int(np.flatnonzero(events.is_null().to_numpy(zero_copy_only=False))[0])
            cuts = column.offsets.to_numpy()
            row = int(np.searchsorted(cuts, event + cuts[0], side="right")) - 1
            raise DataError(
                f"null among the {name}",
                sequence=ids[row].as_py() or f"in row {row}",
                position=event + int(cuts[0] - cuts[row]),
                remedy="drop the event",
            )
    of_times, of_marks = (np.diff(column.offsets.to_numpy()) for column in (times, marks))
    if not np.array_equal(of_times, of_marks):
        row = int(np.flatnonzero(of_times != of_marks)[0])
        raise DataError(
            f"{of_times[row]} times but {of_marks[row]} marks",
            sequence=ids[row].as_py() or f"in row {row}",
            remedy="give one mark per time",
        )


def flat_times(times: npt.ArrayLike) -> FloatArray:
    """Return times as a flat contiguous float64 array."""
    try:
        values = np.ascontiguousarray(times, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"times are not numbers ({error})", remedy="give them as numbers") from error
    if np.asarray(times).dtype.kind in "mM":
        raise DataError(
            "times are dates, which do not say in which unit to count",
            remedy="give them as numbers, such as seconds: (dates - dates[0]) / np.timedelta64(1, 's')",
        )
    if np.ndim(times) != 1:
        raise DataError(f"times have {np.ndim(times)} dimensions, not 1", remedy="give one flat list")
    return values


def flat_marks(marks: npt.ArrayLike) -> npt.NDArray[np.int32]:
    """Return marks as a flat contiguous int32 array; any other value is an error."""
    try:
        values = np.asarray(marks)
    except ValueError as error:
        raise DataError(
            "marks are lists of unequal length, not one flat list", remedy="give one mark per event"
        ) from error
    if values.ndim != 1:
        raise DataError(f"marks have {values.ndim} dimensions, not 1", remedy="give one flat list")
    if values.dtype == np.int32:
        return np.ascontiguousarray(values)
    if not len(values):
        return np.empty(0, np.int32)
    if values.dtype.kind not in "iufb":
        raise DataError(f"marks are {values.dtype}, not integers", remedy="number the marks from 0")
    with np.errstate(invalid="ignore"):
        as_int = values.astype(np.int32)
    wrong = np.flatnonzero(as_int != values)
    if len(wrong):
        raise DataError(f"mark {values[wrong[0]]} is not a 32-bit integer", remedy="number the marks from 0")
    return as_int


def table_of(
    times: npt.ArrayLike,
    marks: npt.ArrayLike,
    offsets: npt.ArrayLike,
    columns: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> pa.Table:
    """Make the canonical table of flat events, offsets and columns.

    A column that is None is left out; without `id` the sequences are numbered.
    """
    events_times, events_marks = flat_times(times), flat_marks(marks)
    cuts = np.ascontiguousarray(offsets, dtype=np.int64)
    events = len(events_times)
    if events != len(events_marks):
        raise DataError(f"{events} times but {len(events_marks)} marks", remedy="give one mark per time")
    if cuts.ndim != 1 or not len(cuts) or cuts[0] != 0 or cuts[-1] != events or (np.diff(cuts) < 0).any():
        raise DataError(
            f"offsets must rise from 0 to the number of events, {events}", remedy="give n + 1 offsets for n sequences"
        )
    if taken := [name for name in metadata if name in CANONICAL]:
        raise DataError(f"{taken[0]!r} is not metadata", remedy="pass it as its own argument")
    number = len(cuts) - 1
    given = {
        **columns,
        **metadata,
        "id": [str(row) for row in range(number)] if columns.get("id") is None else columns["id"],
        "times": pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(events_times)),
        "marks": pa.LargeListArray.from_arrays(pa.array(cuts), pa.array(events_marks)),
    }
    made = {name: as_column(name, values) for name, values in given.items() if values is not None}
    for name, column in made.items():
        if len(column) != number:
            raise DataError(
                f"column {name!r} has {len(column)} rows for {number} sequences", remedy="give one value per sequence"
            )
    return in_order(pa.table(made))


def joined_events(
    sequences: Iterable[tuple[npt.ArrayLike, npt.ArrayLike]],
) -> tuple[FloatArray, npt.NDArray[Any], IntArray]:
    """Return flat times, flat marks and offsets of (times, marks) pairs."""
    pairs = [(flat_times(times), np.asarray(marks)) for times, marks in sequences]
    for row, (times, marks) in enumerate(pairs):
        if times.shape != marks.shape:
            raise DataError(
                f"times have shape {times.shape}, marks {marks.shape}", sequence=row, remedy="give one mark per time"
            )
    lengths = [len(times) for times, _ in pairs]
    return (
        np.concatenate([times for times, _ in pairs]) if pairs else np.empty(0),
        np.concatenate([marks for _, marks in pairs]) if pairs else np.empty(0, np.int32),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
    )


def event_values(column: pa.Array, lengths: IntArray) -> pa.Array | None:
    """Return the flat values of a list column with one value per event, such as an amount; None for other columns."""
    if not is_plain_list(column.type) or column.null_count:
        return None
    return column.flatten() if np.array_equal(column.value_lengths().to_numpy(), lengths) else None


def event_lists(values: pa.Array, events: IntArray, offsets: IntArray) -> pa.LargeListArray:
    """Return a list column with the values of the given events, divided into sequences by `offsets`."""
    return pa.LargeListArray.from_arrays(pa.array(offsets), values.take(pa.array(events)))


def selected_rows(key: Any, number: int) -> IntArray:
    """Return the row numbers that a mask or integers select out of `number`; negative integers count from the end."""
    rows = np.asarray(key)
    if rows.ndim != 1:
        raise IndexError(f"sequences are selected by one dimension, not by {rows.ndim}")
    if rows.dtype == bool:
        if len(rows) != number:
            raise IndexError(f"a mask of length {len(rows)} does not fit {number} sequences")
        return np.flatnonzero(rows)
    if not len(rows):
        return np.empty(0, np.int64)
    if not np.issubdtype(rows.dtype, np.integer):
        raise TypeError(f"sequences are selected by integers, slices or masks, not by {rows.dtype}")
    rows = rows.astype(np.int64)
    if rows.min() < -number or rows.max() >= number:
        raise IndexError(
            f"there is no row {rows.min() if rows.min() < -number else rows.max()} among {number} sequences"
        )
    return np.where(rows < 0, rows + number, rows)


def as_column(name: str, values: Any) -> pa.Array:
    """Return any values as one Arrow array, of the canonical type if the column has one."""
    try:
        if not isinstance(values, (pa.Array, pa.ChunkedArray)):
            values = pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {name!r} cannot be made of these values ({error})", remedy="give values of one type"
        ) from error
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    return _cast(name, values)


def with_column(table: pa.Table, name: str, values: Any) -> pa.Table:
    """Return the table with a column added or replaced."""
    column = as_column(name, values)
    if len(column) != table.num_rows:
        problem = f"column {name!r} has {len(column)} values for {table.num_rows} sequences"
        raise DataError(problem, remedy="give one value per sequence")
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def is_plain_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def joined_tables(tables: Sequence[pa.Table]) -> pa.Table:
    """Join the rows of all tables; a column that one of them lacks is null there."""
    try:
        return one_chunk(in_order(pa.concat_tables(tables, promote_options="default")))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"columns do not fit together ({error})", remedy="convert or drop the column") from error
