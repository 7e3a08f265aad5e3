"""Parquet files and folders of them: opening, checking, reading in batches, writing.

A folder of Parquet files (as Spark writes them) counts as one file; sub-folders named `column=value` add a column.
Files that this library wrote have a checksum of the whole file (`seal`), which is checked before anything is read. In
other files the checksums of the pages are checked, if there are any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.stored_meaning import MEANING_KEY
from neuroseqret.errors import DataError
from neuroseqret.readers.engines import damage
from neuroseqret.readers.engines.other_columns import numbers_if_all
from neuroseqret.readers.engines.parquet_footer import decoded_bytes
from neuroseqret.readers.limits import check_columns, check_expansion
from neuroseqret.storage import seal
from neuroseqret.storage.files import new_file

_EVENTS_PER_ROW_GROUP = 1 << 22
#: The name that Spark and others give to the folder of rows whose value is null.
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"


def damage_as_data_error(path: str | PathLike[str]) -> AbstractContextManager[None]:
    """Turn whatever a Parquet library raises over a damaged file into one `DataError` that names the file."""
    return damage.damage_as_data_error(path, "Parquet", "write the file again")


def parquet_parts(path: str | PathLike[str]) -> list[Path]:
    """Return the file itself, or the Parquet files of a folder, sorted, without Spark's markers and hidden files."""
    root = Path(path)
    if not root.is_dir():
        return [root]
    parts = [p for p in sorted(root.rglob("*.parquet")) if p.is_file()]
    parts = [p for p in parts if not any(name.startswith((".", "_")) for name in p.relative_to(root).parts)]
    if not parts:
        raise DataError("a folder without Parquet files", file=path, remedy="name a file or a data folder")
    return parts


def parquet_schema(path: str | PathLike[str]) -> pa.Schema:
    """Return the columns of a file or folder, with those in folder names; use inside `damage_as_data_error`."""
    parts = parquet_parts(path)
    return _with_fields(pq.read_schema(parts[0]), _partition_columns(path, parts))


def _with_fields(schema: pa.Schema, columns: Mapping[str, pa.Array]) -> pa.Schema:
    for name, values in columns.items():
        schema = schema.append(pa.field(name, values.type))
    return schema


def _partition_columns(path: str | PathLike[str], parts: list[Path]) -> dict[str, pa.Array]:
    """Return the columns in folder names (`group=x/part-0.parquet`, as Spark writes them), one value per part."""
    rows = [_partition(part.relative_to(path)) for part in parts]
    for part, row in zip(parts, rows, strict=True):
        if list(row) != list(rows[0]):
            raise DataError(
                f"the folder names of {_short(parts[0], path)} and {_short(part, path)} have different columns",
                file=path,
                remedy="read them one by one",
            )
    return {name: numbers_if_all(pa.array([row[name] for row in rows], pa.string())) for name in rows[0]}


def _partition(part: Path) -> dict[str, str | None]:
    words = (folder.partition("=") for folder in part.parts[:-1])
    return {unquote(name): None if value == _NULL_FOLDER else unquote(value) for name, equals, value in words if equals}


def _short(part: Path, path: str | PathLike[str]) -> str:
    return part.relative_to(path).as_posix()


@dataclass(frozen=True)
class RowGroup:
    """A row group: rows of one file that can be read separately."""

    part: int
    group: int
    first_row: int
    rows: int


class ParquetParts:
    """A Parquet file or a folder of them, checked; use inside `damage_as_data_error`."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._paths = parquet_parts(path)
        # Check before decoding: decoders trust their input and may crash over damage.
        for part in self._paths:
            if seal.is_broken(part):
                raise DataError("damaged: the checksum does not match", file=part, remedy="write or copy it again")
            check_expansion(decoded_bytes(part), part)
        self._sealed = [seal.is_sealed(part) for part in self._paths]
        self.footers = [pq.read_metadata(part) for part in self._paths]
        self._in_files: pa.Schema = pq.read_schema(self._paths[0])
        for part in self._paths[1:]:
            self._check_alike(part, path)
        check_columns(len(self._in_files.names))
        self._told = _partition_columns(path, self._paths)
        self.schema = _with_fields(self._in_files, self._told)
        self.rows = sum(footer.num_rows for footer in self.footers)

    def _check_alike(self, part: Path, path: str | PathLike[str]) -> None:
        """Check that a part has the same columns, mark names, time unit and layout as the first one."""
        first, schema = self._paths[0], pq.read_schema(part)
        differ = None if schema.equals(self._in_files) else "columns"
        if differ is None:
            here, there = own_meaning(schema, part), own_meaning(self._in_files, first)
            words = {"mark_names": "mark names", "time_unit": "time units", "layout": "layouts"}
            differ = next((word for key, word in words.items() if here.get(key) != there.get(key)), None)
        if differ:
            raise DataError(
                f"its files have different {differ}: {_short(first, path)} and {_short(part, path)}",
                file=path,
                remedy="read them one by one",
            )

    def row_groups(self) -> list[RowGroup]:
        groups, row = [], 0
        for part, footer in enumerate(self.footers):
            for group in range(footer.num_row_groups):
                groups.append(RowGroup(part, group, row, footer.row_group(group).num_rows))
                row += groups[-1].rows
        return groups

    def values(self, group: RowGroup, column: str) -> int:
        """Return how many values the footer counts in a list column: one per event, and one per empty list."""
        if not self._sealed[group.part]:
            # pyarrow aborts the process when a damaged footer is looked up; the decoder meets the same damage and
            # raises, so it goes first.
            with self._open(group.part) as file:
                next(file.iter_batches(1, row_groups=[group.group], columns=[column], use_threads=False), None)
        footer = self.footers[group.part]
        leaves = (footer.schema.column(i).path for i in range(footer.num_columns))
        leaf = next(i for i, path in enumerate(leaves) if self._column_of(path) == column)
        return int(footer.row_group(group.group).column(leaf).num_values)

    def _column_of(self, leaf: str) -> str:
        """Return the column to which a leaf of the file's schema belongs; names may contain dots."""
        return max((n for n in self._in_files.names if leaf == n or leaf.startswith(f"{n}.")), key=len)

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield all rows in batches of at most `rows`."""
        for part in range(len(self._paths)):
            # Columns in folder names are not in the file, so all columns are read to know the number of rows.
            inside = columns if columns is None or not self._told.keys() & columns else None
            with self._open(part) as file:
                for batch in file.iter_batches(rows, columns=inside):
                    whole = self._completed(batch, part)
                    yield whole if columns is None else whole.select(columns)

    def group_batches(self, group: RowGroup, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one group in batches, in this thread alone, so that several threads may read at once."""
        with self._open(group.part) as file:
            for batch in file.iter_batches(rows, row_groups=[group.group], use_threads=False):
                yield self._completed(batch, group.part)

    def _completed(self, batch: pa.RecordBatch, part: int) -> pa.RecordBatch:
        """Add the columns in folder names to rows of a part."""
        for name, values in self._told.items():
            batch = batch.append_column(name, pa.repeat(values[part], len(batch)))
        return batch

    def _open(self, part: int) -> pq.ParquetFile:
        # No pre-buffering and small buffers: otherwise the compressed file is in memory together with its arrays.
        return pq.ParquetFile(
            self._paths[part],
            metadata=self.footers[part],
            pre_buffer=False,
            buffer_size=1 << 18,
            page_checksum_verification=not self._sealed[part],
        )


def meaning_of(schema: pa.Schema, path: str | PathLike[str]) -> tuple[tuple[str, ...] | None, str | None]:
    """Return the mark names and the time unit in the file."""
    return checked_meaning(own_meaning(schema, path), path)


def own_meaning(schema: pa.Schema, path: str | PathLike[str]) -> dict[str, Any]:
    """Return the metadata that this library wrote into the file; empty for files of other tools."""
    try:
        meaning = json.loads((schema.metadata or {}).get(MEANING_KEY, b"{}"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"damaged metadata ({error})", file=path, remedy="write the file again") from error
    if not isinstance(meaning, dict):
        raise DataError("metadata is not a JSON object", file=path, remedy="write the file again")
    return meaning


def checked_meaning(meta: Any, path: str | PathLike[str]) -> tuple[tuple[str, ...] | None, str | None]:
    """Return `mark_names` and `time_unit` of a JSON object, both optional, after checking their types."""
    if not isinstance(meta, dict):
        raise DataError("metadata is not a JSON object", file=path, remedy="write it again")
    names, unit = meta.get("mark_names"), meta.get("time_unit")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DataError("mark_names is not a list of strings", file=path, remedy="list one name per mark, from 0")
    if unit is not None and not isinstance(unit, str):
        raise DataError("time_unit is not a string", file=path, remedy='give a name such as "seconds"')
    return None if names is None else tuple(names), unit


def write_parquet(
    table: pa.Table, path: str | PathLike[str], sequences: EventSequences, more: Mapping[str, Any] | None = None
) -> None:
    """Write a sealed Parquet file, completely or not at all, with mark names and time unit in its metadata."""
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
