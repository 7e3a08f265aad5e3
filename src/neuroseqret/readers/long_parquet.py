"""A long table as Parquet: one row an event."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import pyarrow as pa

from neuroseqret.readers.long_table import (
    LARGE_LIST,
    SEQUENCE,
    assemble,
    check_ids,
    explode,
    find_roles,
    varying_columns,
    whole_sequences,
)
from neuroseqret.readers.options import Options
from neuroseqret.readers.parquet import (
    ParquetParts,
    damage_as_data_error,
    meaning_of,
    own_meaning,
    write_parquet,
)
from neuroseqret.readers.values import check_unit, is_text, sorted_names
from neuroseqret.sequences import EventSequences

NAMES = {"times": "time", "marks": "mark"}
_BATCH_EVENTS = 1 << 18


class _LongParquet:
    """The file (or folder of files), its columns' roles, and what the marks are called."""

    def __init__(self, path: str | PathLike[str], options: Options) -> None:
        self.parts = ParquetParts(path)
        self.schema = schema = self.parts.schema
        self.roles = find_roles(schema.names, options.roles)
        own_names, own_unit = meaning_of(schema, path)
        self.mark_names = options.mark_names or own_names
        self.time_unit = options.time_unit or own_unit
        self.missing_ok = not options.validate
        check_unit(schema.field(self.roles["times"]).type, options.time_unit)
        self.layout: dict[str, str] | None = own_meaning(schema, path).get("layout")
        marks = self.roles.get("marks")
        if self.mark_names is None and marks and is_text(schema.field(marks).type):
            texts = self.parts.batches(_BATCH_EVENTS, [marks])
            self.mark_names = sorted_names(batch.column(0) for batch in texts)

    def tables(self) -> Iterator[pa.Table]:
        rows = 0
        for batch in self.parts.batches(_BATCH_EVENTS):
            table = pa.Table.from_batches([batch])
            if not self.missing_ok:
                check_ids(table, self.roles, rows, "row {}".format)
            yield table
            rows += len(batch)

    def assemble(self, table: pa.Table) -> EventSequences:
        made = assemble(table, self.roles, self.mark_names, self.layout, self.missing_ok)
        return made.with_meaning(time_unit=self.time_unit)


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """All sequences; rows in any order."""
    with damage_as_data_error(path):
        file = _LongParquet(path, options)
        tables = list(file.tables())
        return file.assemble(pa.concat_tables(tables) if tables else file.schema.empty_table())


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """The sequences in batches; the rows of a sequence must lie together."""
    with damage_as_data_error(path):
        file = _LongParquet(path, options)
        if file.layout is None:  # looked up beforehand, so that all batches have the same columns
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
    """One row an event, columns `id`, `time`, `mark` and all others; a sequence without events leaves no trace."""
    table, layout = explode(sequences, NAMES, lists=True)
    write_parquet(table, path, sequences, {"layout": layout})
