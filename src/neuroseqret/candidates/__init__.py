"""Hash codes and the ways from a query to its candidates: bucket tables, a scan of codes, cells."""

from __future__ import annotations

from os import PathLike
from typing import Any

from neuroseqret.candidates.bucket_tables import BucketTables
from neuroseqret.candidates.cells import Cells
from neuroseqret.candidates.codes import HashFunction, pack_bits, read_hash, unpack_bits
from neuroseqret.candidates.hamming import hamming_distances, nearest_codes, nearest_of
from neuroseqret.candidates.hash_network import HashNetwork
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.candidates.rotation import RotationCodes
from neuroseqret.errors import UserError

HASHES: dict[str, type[HashFunction]] = {c.name: c for c in (RandomHyperplanes, RotationCodes, HashNetwork)}


def make_hash(name: str, bits: int = 64, **options: Any) -> HashFunction:
    """An unfitted hash function by name: `hyperplanes`, `rotation` or `network`."""
    if name not in HASHES:
        raise UserError(f"no hash function is called {name!r}; there are {', '.join(HASHES)}")
    return HASHES[name](bits=bits, **options)


def load_hash(file: str | PathLike[str]) -> HashFunction:
    """The fitted hash function in a file."""
    return read_hash(file, HASHES)


__all__ = [
    "BucketTables",
    "Cells",
    "HashFunction",
    "HashNetwork",
    "RandomHyperplanes",
    "RotationCodes",
    "hamming_distances",
    "load_hash",
    "make_hash",
    "nearest_codes",
    "nearest_of",
    "pack_bits",
    "unpack_bits",
]
