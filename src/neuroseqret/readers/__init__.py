"""Read and write event sequences in the formats that people have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike

from neuroseqret.readers import canonical
from neuroseqret.readers.folder import DataFolder, read_folder, write_folder
from neuroseqret.sequences import EventSequences

__all__ = ["DataFolder", "read", "read_folder", "write", "write_folder"]


def read(
    path: str | PathLike[str],
    *,
    format: str | None = None,
    columns: Mapping[str, str | None] | None = None,
    mark_names: Sequence[str] | None = None,
    time_unit: str | None = None,
    allow_pickle: bool = False,
    validate: bool = True,
) -> EventSequences:
    """All sequences of a file."""
    sequences = canonical.read(path, columns, mark_names).with_meaning(mark_names, time_unit)
    return sequences.validate(path) if validate else sequences


def write(sequences: EventSequences, path: str | PathLike[str], format: str | None = None) -> None:
    """Write the sequences; the format is the canonical Parquet."""
    canonical.write(sequences, path)
