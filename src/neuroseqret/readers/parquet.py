"""Parquet with one row a sequence and its events in list columns: the engine behind several formats.

The flat arrays are made once, at the size that the files' footers give, and filled batch by batch, so that a
file is read in little more than the memory of its arrays; `scan` reads files larger than memory. A folder of
Parquet files (as Spark writes them) is read as one file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.columns import MEANING_KEY
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import seal
from neuroseqret.readers.files import new_file
from neuroseqret.readers.lists import EVENT_ROLES, ListLayout, Part, join_column
from neuroseqret.readers.values import sorted_names
from neuroseqret.sequences import EventSequences

BATCH_ROWS = 8192
_EVENTS_PER_ROW_GROUP = 1 << 22


@contextmanager
def damage_as_data_error(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever a Parquet library raises over a damaged file, as one `DataError` that names the file."""
    try:
        yield
    except UserError as error:
        if isinstance(error, DataError) and error.file is None:
            error.file = path
        raise
    except FileNotFoundError as error:
        raise DataError("no such file", file=path, remedy="check the path") from error
    except (pa.ArrowException, OSError, MemoryError, UnicodeError, OverflowError, ValueError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not readable as Parquet ({line})", file=path, remedy="write the file again") from error


def open_parquet(path: Path) -> pq.ParquetFile:
    """The file, with its seal checked and the pages' checksums on; call inside `damage_as_data_error`."""
    if seal.is_broken(path):
        raise DataError("damaged: the checksum does not fit", file=path, remedy="write or copy the file again")
    # Neither pre-buffering nor whole column chunks: both would hold the compressed file beside its arrays.
    return pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True)


def parquet_parts(path: str | PathLike[str]) -> list[Path]:
    """The file itself, or the Parquet files of a folder, sorted; Spark's markers and hidden files are left out."""
    root = Path(path)
    if not root.is_dir():
        return [root]
    parts = [p for p in sorted(root.rglob("*.parquet")) if p.is_file()]
    parts = [p for p in parts if not any(name.startswith((".", "_")) for name in p.relative_to(root).parts)]
    if not parts:
        raise DataError("a folder without Parquet files", file=path, remedy="name a file")
    return parts


class ListParquet:
    """Parquet whose events are in list columns; `roles` as in `ListLayout`."""

    def __init__(
        self,
        path: str | PathLike[str],
        roles: Mapping[str, str | None],
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
    ) -> None:
        """Names and unit given here win over the file's own."""
        self.path = path
        with damage_as_data_error(path):
            self.files = [open_parquet(part) for part in parquet_parts(path)]
            schema = self.files[0].schema_arrow
            for file in self.files[1:]:
                if not file.schema_arrow.equals(schema):
                    raise DataError("its files have different columns", remedy="read them one by one")
            own_names, own_unit = meaning_of(schema, path)
            self.layout = ListLayout.of(schema, roles, mark_names or own_names)
            if self.layout.needs_names:
                marks = self.layout.roles["marks"]
                batches = (batch for f in self.files for batch in f.iter_batches(BATCH_ROWS, columns=[marks]))
                self.layout = ListLayout.of(schema, roles, sorted_names(b.column(0).flatten() for b in batches))
            self._unit = time_unit or own_unit

    def read(self) -> EventSequences:
        """All rows."""
        with damage_as_data_error(self.path):
            rows, room = self._sizes()
            times, marks = np.empty(room, np.float64), np.empty(room, np.int32)
            offsets = np.zeros(rows + 1, np.int64)
            rest: dict[str, list[pa.Array]] = {}
            row = event = 0
            for part in self._parts(BATCH_ROWS):
                stop, last = row + len(part.lengths), event + len(part.times)
                if stop > rows or last > room:
                    raise DataError("more rows than the footer says", remedy="write the file again")
                times[event:last], marks[event:last] = part.times, part.marks
                np.cumsum(part.lengths, out=offsets[row + 1 : stop + 1])
                offsets[row + 1 : stop + 1] += event
                for name, array in part.rest.items():
                    rest.setdefault(name, []).append(array)
                row, event = stop, last
            if row != rows:
                raise DataError(f"{row} rows, the footer says {rows}", remedy="write the file again")
            names = ["id", *(n for n in self.layout.names.values() if n != "id" and n not in EVENT_ROLES)]
            columns = {n: join_column(rest[n]) if n in rest else self.layout.empty_column(n) for n in names}
            return self._with_unit(self.layout.sequences(offsets, times[:event], marks[:event], columns))

    def scan(self, batch_rows: int) -> Iterator[EventSequences]:
        """The rows in batches of at most `batch_rows`."""
        with damage_as_data_error(self.path):
            for part in self._parts(batch_rows):
                yield self._with_unit(self.layout.one(part))

    def _with_unit(self, sequences: EventSequences) -> EventSequences:
        return sequences.with_meaning(time_unit=self._unit)

    def _sizes(self) -> tuple[int, int]:
        """Rows, and events at most: footers count a value for each event and for each empty list."""
        footers = [file.metadata for file in self.files]
        leaves = [footers[0].schema.column(i).path.split(".")[0] for i in range(footers[0].num_columns)]
        leaf = leaves.index(self.layout.roles["times"])
        groups = (footer.row_group(g) for footer in footers for g in range(footer.num_row_groups))
        return sum(footer.num_rows for footer in footers), sum(group.column(leaf).num_values for group in groups)

    def _parts(self, batch_rows: int) -> Iterator[Part]:
        row = 0
        for file in self.files:
            for batch in file.iter_batches(batch_rows):
                yield self.layout.part(batch, row)
                row += len(batch)


def meaning_of(schema: pa.Schema, path: str | PathLike[str]) -> tuple[tuple[str, ...] | None, str | None]:
    """Mark names and time unit that the file itself tells."""
    own = (schema.metadata or {}).get(MEANING_KEY)
    if own is None:
        return None, None
    try:
        return checked_meaning(json.loads(own), path)
    except (ValueError, RecursionError) as error:
        raise DataError(f"damaged metadata ({error})", file=path, remedy="write the file again") from error


def checked_meaning(meta: Any, path: str | PathLike[str]) -> tuple[tuple[str, ...] | None, str | None]:
    """`mark_names` and `time_unit` of a JSON object, both optional, of the right types."""
    if not isinstance(meta, dict):
        raise DataError("metadata is not a JSON object", file=path, remedy="write it again")
    names, unit = meta.get("mark_names"), meta.get("time_unit")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DataError("mark_names is not a list of strings", file=path, remedy="list one name per mark, from 0")
    if unit is not None and not isinstance(unit, str):
        raise DataError("time_unit is not a string", file=path, remedy='give it like "seconds"')
    return None if names is None else tuple(names), unit


def write_parquet(
    table: pa.Table, path: str | PathLike[str], sequences: EventSequences, more: Mapping[str, Any] | None = None
) -> None:
    """Write a table sealed and in one step, in row groups of some million events, with the sequences' meaning."""
    meaning = {"version": 1, "mark_names": sequences.mark_names, "time_unit": sequences.time_unit, **(more or {})}
    per_row = max(len(sequences.times) / max(table.num_rows, 1), 1)
    with new_file(path) as temporary:
        pq.write_table(
            table.replace_schema_metadata({MEANING_KEY: json.dumps(meaning)}),
            temporary,
            compression="zstd",
            row_group_size=int(max(_EVENTS_PER_ROW_GROUP / per_row, 1)),
            write_page_checksum=True,
        )
        seal.seal(temporary)
