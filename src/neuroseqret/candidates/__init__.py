"""From a query's embedding to its candidates: the part of the corpus that is worth scoring.

Finders, one way to candidates each. A finder writes, opens and checks its own files:

    finder.py             the contract `Finder`, and `Found`: what a search with one gives
    finders.py            all finders by method name, and which one `auto` takes
    exhaustive_finder.py  `exhaustive`: every row
    cell_finder.py        `cells`: the rows of the nearest k-means cells
    code_finders.py       `hamming` and `buckets`: the rows with the nearest hash codes
    settings.py           the user's settings of all of them

What the finders are made of:

    cells.py              k-means cells
    rounding.py           embeddings in one byte per number
    bucket_tables.py      the paper's bucket tables, with multi-probe
    hamming.py            the scan of all codes
    scoring.py            compiled scoring: the best k rows by dot product
    arrays.py             arrays in files, written in chunks and opened as memory maps

Hash functions, embedding to code of R bits:

    codes.py              the contract `HashFunction`, and how bits lie in words
    hashes.py             all hash functions by name: `make_hash`, `load_hash`
    median_trees.py       median trees: buckets that stay small and keep neighbours together, learned
    hyperplanes.py        random hyperplanes
    rotation.py           PCA-ITQ
    hash_network.py       the paper's trainable hash; its objective is in hash_objective.py
"""

from typing import TYPE_CHECKING, Any

from neuroseqret.candidates.bucket_tables import BucketTables
from neuroseqret.candidates.cells import Cells
from neuroseqret.candidates.codes import HashFunction, pack_bits, unpack_bits
from neuroseqret.candidates.finder import ALL, Finder, Found
from neuroseqret.candidates.finders import FINDERS, choose_finder
from neuroseqret.candidates.hamming import hamming_distances, nearest_codes, nearest_of
from neuroseqret.candidates.hashes import HASHES, hash_class, load_hash, make_hash
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.candidates.median_trees import MedianTrees
from neuroseqret.candidates.rotation import RotationCodes
from neuroseqret.candidates.settings import CandidateSettings

if TYPE_CHECKING:
    from neuroseqret.candidates.hash_network import HashNetwork

__all__ = [
    "ALL",
    "FINDERS",
    "HASHES",
    "BucketTables",
    "CandidateSettings",
    "Cells",
    "Finder",
    "Found",
    "HashFunction",
    "HashNetwork",
    "MedianTrees",
    "RandomHyperplanes",
    "RotationCodes",
    "choose_finder",
    "hamming_distances",
    "hash_class",
    "load_hash",
    "make_hash",
    "nearest_codes",
    "nearest_of",
    "pack_bits",
    "unpack_bits",
]


def __getattr__(name: str) -> Any:
    if name != "HashNetwork":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from neuroseqret.candidates.hash_network import HashNetwork  # when it is first used, because it imports torch

    return HashNetwork
