"""A long table as Parquet or in memory: one row per event."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Protocol

import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers.engines.long_table import (
    LARGE_LIST,
    SEQUENCE,
    assemble,
    check_ids,
    explode,
    find_roles,
    varying_columns,
    whole_sequences,
)
from neuroseqret.readers.engines.marks import sorted_names
from neuroseqret.readers.engines.parquet import (
    ParquetParts,
    damage_as_data_error,
    meaning_of,
    own_meaning,
    write_parquet,
)
from neuroseqret.readers.engines.times import as_dates, as_formatted_dates, check_unit, is_datetime, time_type
from neuroseqret.readers.engines.values import is_text
from neuroseqret.readers.options import Options

NAMES = {"times": "time", "marks": "mark"}
_BATCH_EVENTS = 1 << 18


class Rows(Protocol):
    """The rows of a long table, in Parquet files or in memory."""

    schema: pa.Schema

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows in batches of at most `rows`."""


class _LongTable:
    """The rows, the roles of their columns and the mark names; `path` is where they come from."""

    def __init__(self, rows: Rows, path: str | PathLike[str], options: Options) -> None:
        self.rows = rows
        self.schema = schema = rows.schema
        self.roles = find_roles(schema.names, options.roles)
        own_names, own_unit = meaning_of(schema, path)
        self.mark_names = options.mark_names or own_names
        self.time_unit = options.time_unit or own_unit
        self.missing_ok = not options.validate
        self.time_format = options.time_format
        self.date_types = self._date_types()
        times = self.roles["times"]
        check_unit(self.date_types.get(times, self._type(times)), options.time_unit)
        self.layout: dict[str, str] | None = own_meaning(schema, path).get("layout")
        marks = self.roles.get("marks")
        if self.mark_names is None and marks and is_text(self._type(marks)):
            texts = self.rows.batches(_BATCH_EVENTS, [marks])
            self.mark_names = sorted_names(batch.column(0) for batch in texts)

    def _date_types(self) -> dict[str, pa.DataType]:
        """Return the types of times that are dates written as text, and likewise of `start` and `end`."""
        times = self.roles["times"]
        found = {times: self._time_type(times)}
        if is_datetime(found[times]):
            bounds = [self.roles[role] for role in ("start", "end") if role in self.roles]
            found |= {name: self._time_type(name) for name in bounds}
        return {name: kind for name, kind in found.items() if is_datetime(kind) and is_text(self._type(name))}

    def _time_type(self, name: str) -> pa.DataType:
        """Return the type of a column of times; for text, by its first value."""
        if not is_text(self._type(name)):
            return self._type(name)
        if self.time_format is not None:
            return pa.timestamp("us")
        texts = (batch.column(0).drop_null() for batch in self.rows.batches(_BATCH_EVENTS, [name]))
        return time_type(next((str(column[0].as_py()) for column in texts if len(column)), ""))

    def _type(self, name: str) -> pa.DataType:
        return self.schema.field(name).type

    def tables(self) -> Iterator[pa.Table]:
        rows = 0
        for batch in self.rows.batches(_BATCH_EVENTS):
            table = pa.Table.from_batches([batch])
            if not self.missing_ok:
                check_ids(table, self.roles, rows, "row {}".format)
            for name, kind in self.date_types.items():
                dates = self._dates(table.column(name), kind, f"column {name!r}", rows)
                table = table.set_column(table.column_names.index(name), name, dates)
            yield table
            rows += len(batch)

    def _dates(self, texts: pa.ChunkedArray, kind: pa.DataType, what: str, rows: int) -> pa.ChunkedArray:
        """Convert dates that are text; `rows` is how many rows come before them."""
        if self.time_format is None:
            return as_dates(texts, kind, what, rows)
        return as_formatted_dates(texts, self.time_format, what, lambda row: f"row {rows + row}")

    def assemble(self, table: pa.Table) -> EventSequences:
        made = assemble(table, self.roles, self.mark_names, self.layout, self.missing_ok)
        return made.with_meaning(time_unit=self.time_unit)


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences; rows may be in any order."""
    with damage_as_data_error(path):
        return read_rows(ParquetParts(path), path, options)


def read_rows(rows: Rows, path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences of a long table that is a file or in memory."""
    whole = _LongTable(rows, path, options)
    tables = list(whole.tables())
    return whole.assemble(pa.concat_tables(tables) if tables else whole.schema.empty_table())


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches; the rows of a sequence must be contiguous."""
    with damage_as_data_error(path):
        file = _LongTable(ParquetParts(path), path, options)
        if file.layout is None:  # found first, so that all batches have the same columns
            varying: set[str] = set()
            for table in whole_sequences(file.tables(), file.roles):
                varying |= varying_columns(table, file.roles)
            file.layout = {
                name: LARGE_LIST if name in varying else SEQUENCE
                for name in file.schema.names
                if name not in file.roles.values()
            }
        for table in whole_sequences(file.tables(), file.roles):
            made = file.assemble(table)
            for begin in range(0, len(made), batch_rows):
                yield made[begin : begin + batch_rows]


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write one row per event, with `id`, `time`, `mark` and all other columns; empty sequences are lost."""
    table, layout = explode(sequences, NAMES, lists=True)
    write_parquet(table, path, sequences, {"layout": layout})
