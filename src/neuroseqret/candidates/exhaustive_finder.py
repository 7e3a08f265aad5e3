"""`exhaustive`: compare the query with every row, in memory order."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typing_extensions import Self

from neuroseqret.candidates.arrays import are_as_written
from neuroseqret.candidates.finder import ALL, Finder, Found, Mask, Order, Vectors, space_for
from neuroseqret.candidates.scoring import best_in_runs, suited
from neuroseqret.candidates.settings import CandidateSettings


class ExhaustiveFinder(Finder):
    """All rows are candidates. It has no files of its own."""

    method = "exhaustive"

    def __init__(self, embeddings: Vectors) -> None:
        self.embeddings = embeddings

    @classmethod
    def write(cls, folder: Path, embeddings: Vectors, settings: CandidateSettings) -> Order:
        return np.arange(len(embeddings), dtype=np.int32)

    @classmethod
    def open(cls, folder: Path, embeddings: Vectors) -> Self:
        return cls(embeddings)

    def fits(self, n: int, dimension: int) -> bool:
        return are_as_written([(self.embeddings, (n, dimension), np.float32)])

    @property
    def nbytes(self) -> int:
        return self.embeddings.nbytes

    def best(self, vector: Vectors, number: int, wanted: int = 0, allowed: Mask = ALL) -> Found:
        rows, scores = space_for(number)
        begins, stops = np.array([0]), np.array([len(self.embeddings)])
        kernel = suited(best_in_runs, self.embeddings.size)
        kept, compared = kernel(self.embeddings, vector, begins, stops, allowed, scores, rows)
        return Found(rows[:kept].astype(np.int64), scores[:kept], compared, self.method)
