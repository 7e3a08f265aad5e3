"""EasyTPP's JSON: an object a sequence with `time_since_start`, `type_event`, `dim_process`, `seq_idx`, `seq_len`.

Either one array of such objects or one object a line (JSON lines, which also streams). `dim_process` says how many
marks there are; they have no names, so their numbers are their names. `time_since_last_event` is not read:
EasyTPP's own files do not agree on what it counts from. Further keys are columns: `start`, `end`, `group`, metadata.
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
import pyarrow.json as pa_json

from neuroseqret.errors import DataError
from neuroseqret.readers.damage import damage_as_data_error
from neuroseqret.readers.files import new_file
from neuroseqret.readers.lists import ListLayout, table_from_rows
from neuroseqret.readers.options import Options
from neuroseqret.readers.text import open_bytes, whole_text
from neuroseqret.readers.values import numbered_names, numbers_if_all, sorted_names
from neuroseqret.sequences import EventSequences

ROLES = {"id": "seq_idx", "times": "time_since_start", "marks": "type_event"}
DERIVED = ("time_since_last_event", "seq_len", "dim_process")
_TYPES = pa.schema(
    {
        "time_since_start": pa.list_(pa.float64()),
        "type_event": pa.list_(pa.int64()),
        "time_since_last_event": pa.list_(pa.float64()),
    }
)
#: Bytes of lines that are parsed at a time.
BLOCK = 1 << 24


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """All sequences of one array of objects."""
    with _mistakes(path):
        try:
            rows = json.loads(whole_text(path))
        except (ValueError, RecursionError) as error:
            raise DataError(f"not JSON ({error})", remedy="mend or export it again") from error
        if not isinstance(rows, list):
            raise DataError("not an array of objects", remedy="write one object a sequence")
        if not rows:
            raise DataError("an array without objects", remedy="write one object a sequence")
        return _sequences(_table(rows, 0), options, 0)


def read_lines(path: str | PathLike[str], options: Options) -> EventSequences:
    """All sequences of a file with one object a line."""
    with _mistakes(path):
        tables = [table for table, _ in _blocks(path)]
        if not tables:
            raise DataError("no lines", remedy="write one object a line")
        return _sequences(pa.concat_tables(tables, promote_options="permissive"), options, 0)


def scan_lines(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """The sequences in batches, for files larger than memory; where marks are text, it is gone through twice."""
    with _mistakes(path):
        options = replace(options, mark_names=_names((table for table, _ in _blocks(path)), options))
        for table, row in _blocks(path):
            made = _sequences(table, options, row)
            for begin in range(0, len(made), batch_rows):
                yield made[begin : begin + batch_rows]


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """One array of objects."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        separator = "[\n"
        for row in _rows(sequences):
            out.write(separator + _dump(row))
            separator = ",\n"
        out.write("[]\n" if separator == "[\n" else "\n]\n")


def write_lines(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """One object a line."""
    with new_file(path) as temporary, temporary.open("w", encoding="utf-8") as out:
        out.writelines(_dump(row) + "\n" for row in _rows(sequences))


def _dump(row: dict[str, Any]) -> str:
    """One line; what JSON has no form for is written as text, bytes in hexadecimal."""
    return json.dumps(row, ensure_ascii=False, default=lambda x: x.hex() if isinstance(x, bytes) else str(x))


def _rows(sequences: EventSequences) -> Iterator[dict[str, Any]]:
    """The objects; the first `time_since_last_event` is 0, as in EasyTPP's data sets."""
    ids = numbers_if_all(sequences.ids)
    rest = sequences.table.drop_columns(["id", "times", "marks"])
    for row, sequence in enumerate(sequences):
        yield {
            "dim_process": sequences.num_marks,
            "seq_idx": ids[row].as_py(),
            "seq_len": len(sequence),
            "time_since_start": sequence.times.tolist(),
            "time_since_last_event": np.diff(sequence.times, prepend=sequence.times[:1]).tolist(),
            "type_event": sequence.marks.tolist(),
            **{name: rest.column(name)[row].as_py() for name in rest.column_names},
        }


def _blocks(path: str | PathLike[str]) -> Iterator[tuple[pa.Table, int]]:
    """Some megabytes of whole lines at a time as tables, with the number of their first row."""
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
        # Arrow takes text that looks like a date for a date; JSON has none, so such text stays text.
        dated = [field for field in table.schema if _as_text(field.type) != field.type]
        if dated:
            types = {field.name: field.type for field in _TYPES} | {f.name: _as_text(f.type) for f in dated}
            table = _parse_fast(lines, pa.schema(types)).select(table.column_names)
        return table
    except pa.ArrowException:
        # What the fast parser refuses goes through the exact one: it either reads it or says what is wrong where.
        return _table(list(_parse_each(lines, row)), row)


def _parse_fast(lines: bytes, types: pa.Schema) -> pa.Table:
    return pa_json.read_json(
        io.BytesIO(lines),
        pa_json.ReadOptions(block_size=len(lines) + 1),
        pa_json.ParseOptions(explicit_schema=types),
    )


def _as_text(kind: pa.DataType) -> pa.DataType:
    """The type with text in place of every date, at any depth."""
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
            raise DataError(f"object {number} is not JSON ({error})", remedy="mend or drop the line") from error


def _table(rows: Iterable[Any], row: int) -> pa.Table:
    kept = list(rows)
    for number, item in enumerate(kept, row):
        if not isinstance(item, dict):
            raise DataError(f"object {number} is {type(item).__name__}, not an object", remedy="drop it")
    return table_from_rows(kept)


def _sequences(table: pa.Table, options: Options, row: int) -> EventSequences:
    batch = table.combine_chunks().to_batches()
    data = batch[0] if batch else pa.RecordBatch.from_pylist([], table.schema)
    layout = _layout(table.schema, replace(options, mark_names=_names([table], options)))
    made = layout.one(layout.part(data, row))
    if options.validate:
        _check_lengths(made)
    if made.mark_names is None and (dims := made.column("dim_process")) is not None:
        made = made.with_meaning(numbered_names(dims.unique().to_pylist()))
    return made.without_columns(*DERIVED)


def _layout(schema: pa.Schema, options: Options) -> ListLayout:
    own: dict[str, str | None] = {**ROLES, **({} if "seq_idx" in schema.names else {"id": None})}
    return ListLayout.of(schema, {**own, **options.roles}, options.mark_names)


def _names(tables: Iterable[pa.Table], options: Options) -> tuple[str, ...] | None:
    """The marks' names, as given, or all that occur where marks are text; whether they are the first table tells."""
    found: set[str] = set()
    for table in tables:
        layout = _layout(table.schema, options)
        if not layout.needs_names:
            return options.mark_names
        found.update(sorted_names(chunk.flatten() for chunk in table.column(layout.roles["marks"]).chunks))
    return tuple(sorted(found)) if found else None


def _check_lengths(sequences: EventSequences) -> None:
    """`seq_len` is redundant, and so a check on what was cut off."""
    said = sequences.column("seq_len")
    if said is None or not pa.types.is_integer(said.type):
        return
    differ = np.flatnonzero(said.fill_null(-1).to_numpy(zero_copy_only=False) != sequences.lengths)
    if len(differ):
        row = int(differ[0])
        raise DataError(
            f"seq_len is {said[row].as_py()}, there are {sequences.lengths[row]} events",
            sequence=sequences.ids[row].as_py(),
            remedy="export the sequence again",
        )


def _mistakes(path: str | PathLike[str]) -> AbstractContextManager[None]:
    return damage_as_data_error(path, "EasyTPP's JSON", "export it again", TypeError)
