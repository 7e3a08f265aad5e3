"""HoTPP's Parquet: one row per sequence, columns `id`, `timestamps`, `labels`, and further fields.

HoTPP's data sets are folders of such files; a folder is read as one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike

import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers.engines.list_parquet import ListParquet
from neuroseqret.readers.engines.other_columns import numbers_if_all
from neuroseqret.readers.engines.parquet import write_parquet
from neuroseqret.readers.options import Options

ROLES = {"id": "id", "times": "timestamps", "marks": "labels"}


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences; further fields become metadata."""
    return _open(path, options).read()


def scan(path: str | PathLike[str], options: Options, batch_rows: int) -> Iterator[EventSequences]:
    """Yield the sequences in batches."""
    return _open(path, options).scan(batch_rows)


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write ids (as numbers if possible), times and marks; HoTPP turns every field into a tensor, so no others."""
    table = sequences.table
    columns = {
        "id": numbers_if_all(sequences.ids),
        "timestamps": table.column("times"),
        "labels": table.column("marks"),
    }
    write_parquet(pa.table(columns), path, sequences)


def _open(path: str | PathLike[str], options: Options) -> ListParquet:
    return ListParquet(path, {**ROLES, **options.roles}, options)
