"""The canonical Parquet: one row a sequence, columns `id`, `times`, `marks`, `start`, `end`, `group` and metadata.

Mark names and time unit are in the file's key-value metadata. A `corpus.parquet` or `queries.parquet` without
them takes them from the `meta.json` of its data folder.
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
    """All sequences of a canonical Parquet file."""
    return _with_folder_meaning(_open(path, options).read(), path)


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """The sequences in batches, for files larger than memory."""
    return (_with_folder_meaning(batch, path) for batch in _open(path, options).scan(batch_rows))


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Everything that the sequences carry."""
    write_parquet(sequences.table, path, sequences)


def _open(path: str | PathLike[str], options: Options) -> ListParquet:
    return ListParquet(path, {**ROLES, **options.roles}, options)


def _with_folder_meaning(sequences: EventSequences, path: str | PathLike[str]) -> EventSequences:
    """Fill in from the data folder's `meta.json` what the file itself does not tell."""
    beside = Path(path).parent / META
    if Path(path).name not in FOLDER_FILES or not beside.is_file():
        return sequences
    names, unit = checked_meaning(read_meta(beside), beside)
    return sequences.with_meaning(sequences.mark_names or names, sequences.time_unit or unit)


def is_data_folder(path: str | PathLike[str]) -> bool:
    """True for a folder with a corpus or queries under their names; a folder of other Parquet files is one file."""
    return any((Path(path) / name).exists() for name in FOLDER_FILES)


def read_meta(path: Path) -> dict[str, Any]:
    """A `meta.json`, which must be a JSON object."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error})", file=path, remedy="mend or remove it") from error
    if not isinstance(meta, dict):
        raise DataError("not a JSON object", file=path, remedy="mend or remove it")
    return meta
