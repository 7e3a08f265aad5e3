"""The canonical Parquet: one row per sequence, columns `id`, `times`, `marks`, `start`, `end`, `group` and metadata.

Mark names and time unit are in the metadata of the file. A `corpus.parquet` or `queries.parquet` without them takes
them from the `meta.json` of its data folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.list_parquet import ListParquet
from neuroseqret.readers.engines.parquet import checked_meaning, write_parquet
from neuroseqret.readers.options import Options

ROLES = {"id": "id", "times": "times", "marks": "marks"}
FOLDER_FILES = ("corpus.parquet", "queries.parquet")
META = "meta.json"


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences."""
    return with_folder_meaning(open_file(path, options).read(), path)


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches."""
    return (with_folder_meaning(batch, path) for batch in open_file(path, options).scan(batch_rows))


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write the sequences with all of their columns."""
    write_parquet(sequences.table, path, sequences)


def open_file(path: str | PathLike[str], options: Options) -> ListParquet:
    """Open a file, to ask for its size or to read it."""
    return ListParquet(path, {**ROLES, **options.roles}, options)


def with_folder_meaning(sequences: EventSequences, path: str | PathLike[str]) -> EventSequences:
    """Take mark names and time unit from the `meta.json` of the data folder if the file has none."""
    beside = Path(path).parent / META
    if Path(path).name not in FOLDER_FILES or not beside.is_file():
        return sequences
    names, unit = checked_meaning(read_meta(beside), beside)
    return sequences.with_meaning(sequences.mark_names or names, sequences.time_unit or unit)


def is_data_folder(path: str | PathLike[str]) -> bool:
    """Return True for a folder with a corpus or queries; a folder of other Parquet files is read as one file."""
    return any((Path(path) / name).exists() for name in FOLDER_FILES)


def read_meta(path: Path) -> dict[str, Any]:
    """Read a `meta.json`, which must be a JSON object."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error})", file=path, remedy="correct or remove it") from error
    if not isinstance(meta, dict):
        raise DataError("not a JSON object", file=path, remedy="correct or remove it")
    return meta
