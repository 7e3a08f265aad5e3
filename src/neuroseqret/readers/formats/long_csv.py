"""A long table as CSV: a header and one line per event; commas, semicolons, tabs or bars between fields.

Ids stay text as written. Whether a column holds whole numbers, numbers or text is decided by all of its values, not by
the first ones. An unquoted empty field is null. Whether times are numbers or datetimes is decided by the first one.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from os import PathLike, fspath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers.engines.csv_table import CsvTable
from neuroseqret.readers.engines.damage import damage_as_data_error
from neuroseqret.readers.engines.formulas import defused, defused_name, restored_name
from neuroseqret.readers.engines.long_table import (
    LARGE_LIST,
    SEQUENCE,
    assemble,
    explode,
    varying_columns,
    whole_sequences,
)
from neuroseqret.readers.engines.marks import sorted_names
from neuroseqret.readers.engines.values import NUMBER_PATTERN, WHOLE_PATTERN
from neuroseqret.readers.options import Options
from neuroseqret.storage.files import new_file

NAMES = {"times": "time", "marks": "mark"}
_KINDS = (pa.int64(), pa.float64(), pa.string())


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences; rows may be in any order."""
    with _mistakes(path):
        file = CsvTable(path, options)
        tables = list(file.tables())
        table = pa.concat_tables(tables) if tables else pa.schema(file.types).empty_table()
        kinds = {name: _kind(table.column(name)) for name in file.text_columns()}
        names = options.mark_names or _names(file, kinds, _mark_texts(file, tables))
        return assemble(_typed(table, kinds), file.restored_roles, names, missing_ok=file.missing_ok)


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches; the rows of a sequence must be contiguous. The file is read twice."""
    with _mistakes(path):
        file = CsvTable(path, options)
        kinds, varying = dict.fromkeys(file.text_columns(), 0), set()
        texts: set[str] = set()
        for table in whole_sequences(file.tables(), file.roles):
            kinds = {name: max(kind, _kind(table.column(name))) for name, kind in kinds.items()}
            varying |= varying_columns(table, file.roles)
            texts.update(_mark_texts(file, [table]))
        names = options.mark_names or _names(file, kinds, texts)
        own = [name for name in file.names if name not in file.roles.values()]
        layout = {restored_name(name): LARGE_LIST if name in varying else SEQUENCE for name in own}
        for table in whole_sequences(file.tables(), file.roles):
            made = assemble(_typed(table, kinds), file.restored_roles, names, layout, file.missing_ok)
            for begin in range(0, len(made), batch_rows):
                yield made[begin : begin + batch_rows]


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write one line per event: `id`, `time`, `mark`, and other columns with one value per sequence or event."""
    table, _ = explode(sequences, NAMES, lists=False)
    columns = {defused_name(name): _writable(table.column(name)) for name in table.column_names}
    options = pa_csv.WriteOptions(delimiter="\t" if fspath(path).lower().endswith(".tsv") else ",")
    with new_file(path) as temporary:
        pa_csv.write_csv(pa.table(columns), temporary, options)


def _writable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column; types that CSV does not know become text, bytes in hexadecimal."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.chunked_array([pa.array([value and value.hex() for value in column.to_pylist()], pa.string())])
    plain = pa.types.is_primitive(kind) and not pa.types.is_duration(kind) and not pa.types.is_float16(kind)
    return column if plain else defused(column.cast(pa.large_string()))


def _mistakes(path: str | PathLike[str]) -> AbstractContextManager[None]:
    return damage_as_data_error(path, "CSV", "correct the line", csv.Error)


def _kind(column: pa.ChunkedArray) -> int:
    """Return 0 if all values are whole numbers in their usual spelling, 1 if all are numbers, 2 if some are text."""
    kind = 0
    for chunk in column.chunks:
        texts = chunk.dictionary.drop_null()
        while (
            kind < 2
            and not pc.all(pc.match_substring_regex(texts, (WHOLE_PATTERN, NUMBER_PATTERN)[kind]), min_count=0).as_py()
        ):
            kind += 1
    return kind


def _mark_texts(file: CsvTable, tables: list[pa.Table]) -> tuple[str, ...]:
    """Return every mark as text."""
    if "marks" not in file.roles:
        return ()
    columns = (table.column(file.roles["marks"]) for table in tables)
    return sorted_names(chunk.dictionary for column in columns for chunk in column.chunks)


def _names(file: CsvTable, kinds: Mapping[str, int], texts: Collection[str]) -> tuple[str, ...] | None:
    """Return the mark names if marks are text, else None."""
    marks = file.roles.get("marks")
    return None if marks is None or kinds[marks] < 2 else tuple(sorted(texts))


def _typed(table: pa.Table, kinds: Mapping[str, int]) -> pa.Table:
    """Return the table with each text column in the type that fits all of its values."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        typed = column.cast(pa.string()).cast(_KINDS[kinds[name]]) if name in kinds else column
        columns[restored_name(name)] = typed
    return pa.table(columns)
