"""EasyTPP's JSON: one object per sequence with `time_since_start`, `type_event`, `dim_process`, `seq_idx`, `seq_len`.

A file is one array of such objects, or has one object per line (JSON lines, which can be read in batches).
`dim_process` is the number of marks; they have no names, so they are named by their numbers. `time_since_last_event` is
not read, as EasyTPP's own files do not agree on what it counts from. Further keys are columns: `start`, `end`, `group`,
metadata.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import damage_as_data_error
from neuroseqret.readers.engines.json_rows import table_from_rows
from neuroseqret.readers.engines.lists import ListLayout, one_batch
from neuroseqret.readers.engines.marks import mark_count, numbered_names, sorted_names
from neuroseqret.readers.engines.other_columns import numbers_if_all
from neuroseqret.readers.engines.text import open_bytes, whole_text
from neuroseqret.readers.engines.times import LARGEST_EXACT, first_rounded
from neuroseqret.readers.engines.values import is_text
from neuroseqret.readers.limits import check_columns
from neuroseqret.readers.options import Options
from neuroseqret.storage.files import new_file

ROLES = {"id": "seq_idx", "times": "time_since_start", "marks": "type_event"}
DERIVED = ("time_since_last_event", "seq_len", "dim_process")
_TYPES = pa.schema(
    {
        "time_since_start": pa.list_(pa.float64()),
        "type_event": pa.list_(pa.int64()),
        "time_since_last_event": pa.list_(pa.float64()),
    }
)
#: Bytes of lines that are parsed at once.
BLOCK = 1 << 24


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences of an array of objects."""
    with _mistakes(path):
        try:
            rows = json.loads(whole_text(path))
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON ({error})", remedy="correct the file or export it again") from error
        if not isinstance(rows, list):
            raise DataError("not an array of objects", remedy="write one object per sequence")
        if not rows:
            raise DataError("the array is empty", remedy="write one object per sequence")
        return _sequences(_table(rows, 0), options, 0)


def read_lines(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences of a file with one object per line."""
    with _mistakes(path):
        tables = [table for table, _ in _blocks(path)]
        if not tables:
            raise DataError("there are no lines", remedy="write one object per line")
        return _sequences(_joined(tables), options, 0)


def scan_lines(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches; if marks are text, the file is read twice."""
    with _mistakes(path):
        options = replace(options, mark_names=_names((table for table, _ in _blocks(path)), options))
        for table, row in _blocks(path):
            made = _sequences(table, options, row)
            for begin in range(0, len(made), batch_rows):
                yield made[begin : begin + batch_rows]


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write one array of objects."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        separator = "[\n"
        for row in _rows(sequences):
            out.write(separator + _dump(row))
            separator = ",\n"
        out.write("[]\n" if separator == "[\n" else "\n]\n")


def write_lines(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write one object per line."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.writelines(_dump(row) + "\n" for row in _rows(sequences))


def _dump(row: dict[str, Any]) -> str:
    """Return one line; values that JSON does not know become text, bytes in hexadecimal."""
    return json.dumps(row, ensure_ascii=False, default=lambda x: x.hex() if isinstance(x, bytes) else str(x))


def _rows(sequences: EventSequences) -> Iterator[dict[str, Any]]:
    """Yield the objects; the first `time_since_last_event` is 0, as in EasyTPP's data sets."""
    ids, marks = numbers_if_all(sequences.ids), mark_count(sequences)
    rest = sequences.table.drop_columns(["id", "times", "marks"])
    for row, sequence in enumerate(sequences):
        yield {
            "dim_process": marks,
            "seq_idx": ids[row].as_py(),
            "seq_len": len(sequence),
            "time_since_start": sequence.times.tolist(),
            "time_since_last_event": np.diff(sequence.times, prepend=sequence.times[:1]).tolist(),
            "type_event": sequence.marks.tolist(),
            **{name: rest.column(name)[row].as_py() for name in rest.column_names},
        }


def _blocks(path: str | PathLike[str]) -> Iterator[tuple[pa.Table, int]]:
    """Yield blocks of whole lines as tables, with the number of their first row."""
    row, held = 0, b""
    with open_bytes(path) as stream:
        while block := bytes(stream.read(BLOCK)):
            whole, newline, held = (held + block).rpartition(b"\n")
            if newline and whole.strip():
                table = _parse_lines(whole, row)
                yield table, row
                row += table.num_rows
        if held.strip():
            yield _parse_lines(held, row), row


def _parse_lines(lines: bytes, row: int) -> pa.Table:
    try:
        table = _parse_fast(lines, _TYPES)
        check_columns(table.num_columns, "different keys")
        # Arrow reads text that looks like a date as a date; JSON has no dates, so it has to stay text.
        dated = [field for field in table.schema if _as_text(field.type) != field.type]
        if dated:
            types = {field.name: field.type for field in _TYPES} | {f.name: _as_text(f.type) for f in dated}
            table = _parse_fast(lines, pa.schema(types)).select(table.column_names)
        if not any(_may_be_rounded(table.column(name)) for name in table.column_names if name not in DERIVED):
            return table
    except pa.ArrowException:
        pass
    # The exact parser reads what the fast one refuses or rounds, or says what is wrong and where.
    return _table(list(_parse_each(lines, row)), row)


def _may_be_rounded(column: pa.ChunkedArray | pa.Array) -> bool:
    """Return True if a number, at any depth, is so large that a whole number may have been rounded."""
    kind = column.type
    if pa.types.is_list(kind):
        return _may_be_rounded(pc.list_flatten(column))
    if pa.types.is_struct(kind):
        return any(_may_be_rounded(pc.struct_field(column, [at])) for at in range(kind.num_fields))
    if not pa.types.is_floating(kind):
        return False
    return bool(pc.any(pc.greater_equal(pc.abs(column), LARGEST_EXACT), min_count=0).as_py())


def _joined(tables: list[pa.Table]) -> pa.Table:
    """Join the rows of all tables; whole numbers become text if another table has text in that column."""
    texts = {field.name for table in tables for field in table.schema if is_text(field.type)}

    def agreed(field: pa.Field) -> pa.Field:
        return pa.field(field.name, pa.string()) if field.name in texts and pa.types.is_integer(field.type) else field

    cast = [table.cast(pa.schema([agreed(field) for field in table.schema])) for table in tables]
    return pa.concat_tables(cast, promote_options="permissive")


def _parse_fast(lines: bytes, types: pa.Schema) -> pa.Table:
    return pa_json.read_json(
        io.BytesIO(lines),
        pa_json.ReadOptions(block_size=len(lines) + 1),
        pa_json.ParseOptions(explicit_schema=types),
    )


def _as_text(kind: pa.DataType) -> pa.DataType:
    """Return the type with text in place of every date, at any depth."""
    if pa.types.is_temporal(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_as_text(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _as_text(field.type)) for field in kind])
    return kind


def _parse_each(lines: bytes, row: int) -> Iterator[Any]:
    for number, line in enumerate((line for line in lines.split(b"\n") if line.strip()), row):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"object {number} is not JSON ({error})", remedy="correct or remove the line") from error


def _table(rows: Iterable[Any], row: int) -> pa.Table:
    kept = list(rows)
    for number, item in enumerate(kept, row):
        if not isinstance(item, dict):
            raise DataError(f"object {number} is {type(item).__name__}, not an object", remedy="remove it")
    table = table_from_rows(kept)
    name = ROLES["times"]
    kind = table.schema.field(name).type if name in table.column_names else pa.null()
    if pa.types.is_list(kind) and is_text(kind.value_type):
        _check_times(kept, row)
    if pa.types.is_list(kind) and pa.types.is_integer(kind.value_type):
        times = table.column(name).cast(_TYPES.field(name).type, safe=False)  # so that all blocks have the same type
        if _may_be_rounded(times):
            _check_times(kept, row)
        table = table.set_column(table.column_names.index(name), name, times)
    return table


def _check_times(rows: list[dict[str, Any]], row: int) -> None:
    """Raise a `DataError` for the first time that is a whole number which a float64 cannot hold, if any."""
    for number, item in enumerate(rows, row):
        written = item.get(ROLES["times"]) or []
        numbers = [time if isinstance(time, (int, float)) else np.nan for time in written]
        event = first_rounded(np.array(numbers, np.float64), written)
        if event is not None:
            raise DataError(
                f"time ({ROLES['times']}) does not fit a float64 ({written[event]})",
                sequence=item.get(ROLES["id"], number),
                position=event,
                remedy="convert it to seconds",
            )


def _sequences(table: pa.Table, options: Options, row: int) -> EventSequences:
    layout = _layout(table.schema, replace(options, mark_names=_names([table], options)))
    made = layout.one(layout.part(one_batch(table), row))
    if options.validate:
        _check_lengths(made)
    if made.mark_names is None and (dims := made.column("dim_process")) is not None:
        made = made.with_meaning(numbered_names(dims.unique().to_pylist()))
    return made.without_columns(*DERIVED)


def _layout(schema: pa.Schema, options: Options) -> ListLayout:
    own: dict[str, str | None] = {**ROLES, **({} if "seq_idx" in schema.names else {"id": None})}
    return ListLayout.of(schema, {**own, **options.roles}, options.mark_names, not options.validate)


def _names(tables: Iterable[pa.Table], options: Options) -> tuple[str, ...] | None:
    """Return the given mark names, or, if marks are text in the first table, all texts that occur."""
    found: set[str] = set()
    for table in tables:
        layout = _layout(table.schema, options)
        if not layout.needs_names:
            return options.mark_names
        found.update(sorted_names(chunk.flatten() for chunk in table.column(layout.roles["marks"]).chunks))
    return tuple(sorted(found)) if found else None


def _check_lengths(sequences: EventSequences) -> None:
    """Check the lengths against `seq_len`, to find sequences that were cut off."""
    said = sequences.column("seq_len")
    if said is None or not pa.types.is_integer(said.type):
        return
    differ = np.flatnonzero(said.fill_null(-1).to_numpy(zero_copy_only=False) != sequences.lengths)
    if len(differ):
        row = int(differ[0])
        raise DataError(
            f"seq_len is {said[row].as_py()}, but there are {sequences.lengths[row]} events",
            sequence=sequences.ids[row].as_py(),
            remedy="export the sequence again",
        )


def _mistakes(path: str | PathLike[str]) -> AbstractContextManager[None]:
    return damage_as_data_error(path, "EasyTPP's JSON", "export it again", TypeError)
