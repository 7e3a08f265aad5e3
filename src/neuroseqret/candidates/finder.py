"""The contract of a finder: one way from a query's embedding to the best rows of the corpus.

A finder is derived from the embeddings of the corpus and lives in a folder of arrays, beside the embeddings:

    order = Kind.write(folder, embeddings, settings)         # build it and save it
    finder = Kind.open(folder, embeddings[order])            # the rows lie in the order that `write` gave
    assert finder.fits(len(embeddings), dimension)           # the files are what `write` left
    found = finder.best(vector, number=10, wanted=2000)

`write` does not keep what it builds: rows are written in chunks, so that there is no second copy of the embeddings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.settings import CandidateSettings

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
Order = npt.NDArray[np.int32]
Mask = npt.NDArray[np.bool_]
#: The mask that allows every row.
ALL: Mask = np.empty(0, bool)


@dataclass(frozen=True)
class Found:
    """The best rows for a query, best first, and what finding them took."""

    rows: Rows
    scores: Vectors
    compared: int  # rows that the query was compared with
    method: str  # of the finder
    centres: int = 0  # cell centres that it was compared with besides


class Finder(ABC):
    """One way to candidates over n rows; see the module's docstring."""

    method: ClassVar[str]
    embeddings: Vectors  # (n, D)

    @classmethod
    @abstractmethod
    def write(cls, folder: Path, embeddings: Vectors, settings: CandidateSettings) -> Order:
        """Build the finder over one row or more and save its files; return the order to lay the rows out in."""

    @classmethod
    @abstractmethod
    def open(cls, folder: Path, embeddings: Vectors) -> Self:
        """Open the files that `write` saved; `embeddings` are in the order that it returned."""

    @abstractmethod
    def fits(self, n: int, dimension: int) -> bool:
        """Return whether all arrays are those of n rows and refer to no others; if not, the files are damaged."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that a search may read: what must be in memory for it to be fast."""

    @abstractmethod
    def best(self, vector: Vectors, number: int, wanted: int, allowed: Mask = ALL) -> Found:
        """Return the best `number` of about `wanted` candidates, by the dot product of their embeddings.

        `wanted` is how many rows to look at; a finder looks at more where its structure holds them together.
        `allowed` is a mask over all rows.
        """

    def emptied(self) -> GrowingFinder | None:
        """Return a finder of the same structure without rows, to be grown in memory; None if that would not pay."""
        return None


class GrowingFinder(Finder):
    """A finder that takes in rows which came after it was built."""

    @abstractmethod
    def grown(self, more: Vectors) -> tuple[Order, Self]:
        """Return a finder over its own rows and more, and their order in it; this one does not change."""


def space_for(number: int) -> tuple[npt.NDArray[np.int32], Vectors]:
    """Return empty arrays for rows and scores, which the kernels fill."""
    return np.empty(number, np.int32), np.empty(number, np.float32)
