"""All hash functions by name."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any

from neuroseqret.candidates.codes import HashFunction, read_hash
from neuroseqret.errors import UserError

#: Name to "module:class". A class is imported when it is first asked for, because the network needs torch.
HASHES = {
    "trees": "neuroseqret.candidates.median_trees:MedianTrees",
    "hyperplanes": "neuroseqret.candidates.hyperplanes:RandomHyperplanes",
    "rotation": "neuroseqret.candidates.rotation:RotationCodes",
    "network": "neuroseqret.candidates.hash_network:HashNetwork",
}


def hash_class(name: str) -> type[HashFunction]:
    """Return the class of a hash function; raise a `UserError` that lists the names if there is no such function."""
    if name not in HASHES:
        raise UserError(f"no hash function is called {name!r}; choose one of {', '.join(HASHES)}")
    module, attribute = HASHES[name].split(":")
    found: type[HashFunction] = getattr(import_module(module), attribute)
    return found


def make_hash(name: str, bits: int | None = None, **options: Any) -> HashFunction:
    """Return a hash function that is not fitted yet: `trees`, `hyperplanes`, `rotation` or `network`."""
    return hash_class(name)(**({} if bits is None else {"bits": bits}), **options)


def load_hash(file: str | PathLike[str]) -> HashFunction:
    """Read a fitted hash function from the file that its `save` wrote."""
    return read_hash(file, HASHES, hash_class)
