"""A long table as CSV: one row an event, with a header line; commas, semicolons, tabs or bars between fields.

Ids stay text as written. Whether a column is whole numbers, numbers or text is decided by all of its values, not
by the first ones; an unquoted empty field is a null.
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

from neuroseqret.errors import DataError
from neuroseqret.readers.damage import damage_as_data_error
from neuroseqret.readers.files import new_file
from neuroseqret.readers.long_table import (
    LARGE_LIST,
    SEQUENCE,
    assemble,
    explode,
    find_roles,
    varying_columns,
    whole_sequences,
)
from neuroseqret.readers.options import Options
from neuroseqret.readers.text import first_lines, open_bytes
from neuroseqret.readers.values import NUMBER_PATTERN, WHOLE_PATTERN, sorted_names
from neuroseqret.sequences import EventSequences

NAMES = {"times": "time", "marks": "mark"}
_TEXT = pa.dictionary(pa.int32(), pa.string())
#: Bytes that are parsed at a time.
BLOCK = 1 << 22
_ALWAYS_TEXT = ("source", "split")
_KINDS = (pa.int64(), pa.float64(), pa.string())


class _LongCsv:
    """The file, its delimiter, and its columns' roles."""

    def __init__(self, path: str | PathLike[str], options: Options) -> None:
        self.path = path
        lines = first_lines(path, 2)
        if not lines:
            raise DataError("empty", remedy="write a header line and one line an event")
        self.delimiter = find_delimiter(lines[0])
        header = next(csv.reader([lines[0]], delimiter=self.delimiter))
        self.names = header
        try:
            self.roles = find_roles(header, options.roles)
        except DataError:
            if any(_is_number(name) for name in header):
                raise DataError("the first line is not a header", remedy="name the columns there") from None
            raise
        self.types = dict.fromkeys(header, _TEXT)
        for name in (self.roles.get("id"), self.roles.get("group"), *_ALWAYS_TEXT):
            if name in self.types:
                self.types[name] = pa.string()
        sample = next(csv.reader(lines[1:], delimiter=self.delimiter), [])
        at = header.index(self.roles["times"])
        self.types[self.roles["times"]] = _time_type(sample[at] if at < len(sample) else "0")

    def tables(self) -> Iterator[pa.Table]:
        convert = pa_csv.ConvertOptions(
            column_types=self.types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        parse = pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        # One thread, because only then errors name the row.
        with open_bytes(self.path) as stream:
            reader = pa_csv.open_csv(
                stream,
                read_options=pa_csv.ReadOptions(use_threads=False, block_size=BLOCK),
                parse_options=parse,
                convert_options=convert,
            )
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def text_columns(self) -> list[str]:
        return [name for name in self.names if self.types[name] == _TEXT]


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """All sequences; rows in any order."""
    with _mistakes(path):
        file = _LongCsv(path, options)
        tables = list(file.tables())
        table = pa.concat_tables(tables) if tables else pa.schema(file.types).empty_table()
        kinds = {name: _kind(table.column(name)) for name in file.text_columns()}
        names = options.mark_names or _names(file, kinds, _mark_texts(file, tables))
        return assemble(_typed(table, kinds), file.roles, names)


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """The sequences in batches; the rows of a sequence must lie together. The file is gone through twice."""
    with _mistakes(path):
        file = _LongCsv(path, options)
        kinds, varying = dict.fromkeys(file.text_columns(), 0), set()
        texts: set[str] = set()
        for table in whole_sequences(file.tables(), file.roles):
            kinds = {name: max(kind, _kind(table.column(name))) for name, kind in kinds.items()}
            varying |= varying_columns(table, file.roles)
            texts.update(_mark_texts(file, [table]))
        names = options.mark_names or _names(file, kinds, texts)
        own = [name for name in file.names if name not in file.roles.values()]
        layout = {name: LARGE_LIST if name in varying else SEQUENCE for name in own}
        for table in whole_sequences(file.tables(), file.roles):
            made = assemble(_typed(table, kinds), file.roles, names, layout)
            for begin in range(0, len(made), batch_rows):
                yield made[begin : begin + batch_rows]


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """One line an event, columns `id`, `time`, `mark` and all others with a value a sequence or an event."""
    table, _ = explode(sequences, NAMES, lists=False)
    columns = {name: _writable(table.column(name)) for name in table.column_names}
    options = pa_csv.WriteOptions(delimiter="\t" if fspath(path).lower().endswith(".tsv") else ",")
    with new_file(path) as temporary:
        pa_csv.write_csv(pa.table(columns), temporary, options)


def _writable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Columns of types that CSV has no form for, as text; bytes in hexadecimal."""
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.chunked_array([pa.array([value and value.hex() for value in column.to_pylist()], pa.string())])
    plain = pa.types.is_primitive(kind) and not pa.types.is_duration(kind) and not pa.types.is_float16(kind)
    return column if plain else column.cast(pa.large_string())


def _mistakes(path: str | PathLike[str]) -> AbstractContextManager[None]:
    return damage_as_data_error(path, "CSV", "mend the line", csv.Error)


def find_delimiter(header: str) -> str:
    """The mark between the header's names: whichever of comma, semicolon, tab and bar occurs most."""
    counts = {delimiter: header.count(delimiter) for delimiter in ",;\t|"}
    best = max(counts, key=lambda delimiter: counts[delimiter])
    if not counts[best]:
        raise DataError("the first line names one column only", remedy="write a header with id, time and mark")
    return best


def _time_type(sample: str) -> pa.DataType:
    """Numbers or datetimes, by the first event."""
    if not sample or _is_number(sample):
        return pa.float64()
    zoned = sample.endswith("Z") or "+" in sample or sample.count("-") == 3
    return pa.timestamp("ns", "UTC") if zoned else pa.timestamp("ns")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _kind(column: pa.ChunkedArray) -> int:
    """0 if all values are whole numbers in their usual spelling, 1 if all are numbers, 2 if some are text."""
    kind = 0
    for chunk in column.chunks:
        texts = chunk.dictionary.drop_null()
        while (
            kind < 2
            and not pc.all(pc.match_substring_regex(texts, (WHOLE_PATTERN, NUMBER_PATTERN)[kind]), min_count=0).as_py()
        ):
            kind += 1
    return kind


def _mark_texts(file: _LongCsv, tables: list[pa.Table]) -> tuple[str, ...]:
    """Every mark as it is written."""
    if "marks" not in file.roles:
        return ()
    columns = (table.column(file.roles["marks"]) for table in tables)
    return sorted_names(chunk.dictionary for column in columns for chunk in column.chunks)


def _names(file: _LongCsv, kinds: Mapping[str, int], texts: Collection[str]) -> tuple[str, ...] | None:
    """Mark names, if marks are text; whole numbers are marks as they are."""
    marks = file.roles.get("marks")
    return None if marks is None or kinds[marks] < 2 else tuple(sorted(texts))


def _typed(table: pa.Table, kinds: Mapping[str, int]) -> pa.Table:
    """Text columns in the types that all of their values allow."""
    columns: dict[str, Any] = {}
    for name in table.column_names:
        column = table.column(name)
        columns[name] = column.cast(pa.string()).cast(_KINDS[kinds[name]]) if name in kinds else column
    return pa.table(columns)
