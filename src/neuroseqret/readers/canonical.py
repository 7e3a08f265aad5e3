"""The canonical Parquet: one row a sequence, columns `id`, `times`, `marks`, `start`, `end`, `group` and metadata.

Mark names and time unit are in the file's key-value metadata under `neuroseqret`, as JSON. A `corpus.parquet` or
`queries.parquet` without them takes them from the `meta.json` of its data folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from neuroseqret.errors import DataError
from neuroseqret.readers.parquet import ListColumns, write_parquet
from neuroseqret.sequences import EventSequences

KEY = "neuroseqret"
FOLDER_FILES = ("corpus.parquet", "queries.parquet")
META = "meta.json"


def read(
    path: str | PathLike[str], columns: Mapping[str, str | None] | None = None, mark_names: Sequence[str] | None = None
) -> EventSequences:
    """All sequences of a canonical Parquet file."""
    return _open(path, columns, mark_names).read()


def scan(
    path: str | PathLike[str],
    batch_rows: int,
    columns: Mapping[str, str | None] | None = None,
    mark_names: Sequence[str] | None = None,
) -> Iterator[EventSequences]:
    """The sequences in batches, for files larger than memory."""
    return _open(path, columns, mark_names).scan(batch_rows)


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Everything that the sequences carry, in the canonical columns."""
    meaning = {"version": 1, "mark_names": sequences.mark_names, "time_unit": sequences.time_unit}
    metadata = {KEY: json.dumps(meaning, ensure_ascii=False)}
    write_parquet(sequences.table, path, len(sequences.times), metadata)


def _open(
    path: str | PathLike[str], columns: Mapping[str, str | None] | None, mark_names: Sequence[str] | None
) -> ListColumns:
    file = ListColumns(path, {"id": "id", "times": "times", "marks": "marks"}, mark_names)
    names, unit = meaning_of(path, file.file.schema_arrow)
    if file.mark_names is None:
        file.mark_names = names
    file.time_unit = unit or file.time_unit
    return file


def meaning_of(path: str | PathLike[str], schema: pa.Schema) -> tuple[tuple[str, ...] | None, str | None]:
    """Mark names and time unit of a file: its own, else those of its data folder's `meta.json`."""
    own = (schema.metadata or {}).get(KEY.encode())
    if own is not None:
        try:
            return checked_meaning(json.loads(own), path)
        except ValueError as error:
            raise DataError(f"damaged metadata {KEY!r} ({error})", file=path, remedy="write the file again") from error
    beside = Path(path).parent / META
    if Path(path).name in FOLDER_FILES and beside.is_file():
        return checked_meaning(read_meta(beside), beside)
    return None, None


def read_meta(path: Path) -> dict[str, Any]:
    """A `meta.json`, which must be a JSON object."""
    try:
        meta = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"not readable as JSON ({error})", file=path, remedy="mend or remove it") from error
    if not isinstance(meta, dict):
        raise DataError("not a JSON object", file=path, remedy="mend or remove it")
    return meta


def checked_meaning(meta: Any, path: str | PathLike[str]) -> tuple[tuple[str, ...] | None, str | None]:
    """`mark_names` and `time_unit` of a JSON object, both optional, of the right types."""
    names = meta.get("mark_names") if isinstance(meta, dict) else None
    unit = meta.get("time_unit") if isinstance(meta, dict) else None
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DataError("mark_names is not a list of strings", file=path, remedy="list one name per mark, from 0")
    if unit is not None and not isinstance(unit, str):
        raise DataError("time_unit is not a string", file=path, remedy='give it like "seconds"')
    return None if names is None else tuple(names), unit
