"""All hash functions by name."""

from __future__ import annotations

from os import PathLike
from typing import Any

from neuroseqret.candidates.codes import HashFunction, read_hash
from neuroseqret.candidates.hash_network import HashNetwork
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.candidates.rotation import RotationCodes
from neuroseqret.errors import UserError

HASHES: dict[str, type[HashFunction]] = {c.name: c for c in (RandomHyperplanes, RotationCodes, HashNetwork)}


def make_hash(name: str, bits: int = 64, **options: Any) -> HashFunction:
    """Return a hash function that is not fitted yet: `hyperplanes`, `rotation` or `network`."""
    if name not in HASHES:
        raise UserError(f"no hash function is called {name!r}; choose one of {', '.join(HASHES)}")
    return HASHES[name](bits=bits, **options)


def load_hash(file: str | PathLike[str]) -> HashFunction:
    """Read a fitted hash function from the file that its `save` wrote."""
    return read_hash(file, HASHES)
