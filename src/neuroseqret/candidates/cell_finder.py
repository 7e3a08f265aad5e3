"""`cells`: visit the cells of the nearest centres, score by rounded embeddings, then the best by the exact ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from typing_extensions import Self

from neuroseqret.candidates.arrays import are_as_written, are_runs
from neuroseqret.candidates.cells import Cells, nearest_centres
from neuroseqret.candidates.finder import ALL, Found, GrowingFinder, Mask, Order, Vectors, space_for
from neuroseqret.candidates.rounding import RoundedVectors, rounded
from neuroseqret.candidates.scoring import best_in_cells, best_rows, suited
from neuroseqret.candidates.settings import CandidateSettings


class CellFinder(GrowingFinder):
    """Rows lie cell by cell. A search reads rounded rows; of the exact embeddings only those of its best rows."""

    method = "cells"

    def __init__(self, embeddings: Vectors, small: RoundedVectors, cells: Cells) -> None:
        self.embeddings, self.small, self.cells = embeddings, small, cells
        self._centres = rounded(cells.centres, small.scale)

    @classmethod
    def write(cls, folder: Path, embeddings: Vectors, settings: CandidateSettings) -> Order:
        cells, order = Cells.build(embeddings)
        cells.save(folder)
        RoundedVectors.write(folder, embeddings, order)
        return order

    @classmethod
    def open(cls, folder: Path, embeddings: Vectors) -> Self:
        return cls(embeddings, RoundedVectors.open(folder), Cells.open(folder))

    def emptied(self) -> CellFinder:
        cells = Cells(self.cells.centres, np.zeros(len(self.cells.offsets), np.int64))
        return CellFinder(self.embeddings[:0], RoundedVectors(self.small.numbers[:0], self.small.scale), cells)

    def grown(self, more: Vectors) -> tuple[Order, Self]:
        """Return a finder whose new rows are in the cells of their nearest centres, behind the rows that were there."""
        centres, number = self.cells.centres, np.diff(self.cells.offsets)
        owner = np.concatenate([np.repeat(np.arange(len(centres)), number), nearest_centres(more, centres)])
        order = np.argsort(owner, kind="stable").astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(centres)))])
        place, before = np.empty_like(order), len(self.embeddings)
        place[order] = np.arange(len(order), dtype=order.dtype)
        embeddings = np.empty((len(order), more.shape[1]), np.float32)  # filled in place: a server's memory stays level
        embeddings[place[:before]], embeddings[place[before:]] = self.embeddings, more
        return order, type(self)(embeddings, RoundedVectors.of(embeddings), Cells(centres, offsets))

    def fits(self, n: int, dimension: int) -> bool:
        centres, offsets = self.cells.centres, self.cells.offsets
        written = are_as_written(
            [
                (self.embeddings, (n, dimension), np.float32),
                (self.small.numbers, (n, dimension), np.int8),
                (self.small.scale, (dimension,), np.float32),
                (centres, (len(centres), dimension), np.float32),
                (offsets, (len(centres) + 1,), np.int64),
            ]
        )
        return written and are_runs(offsets, n)

    @property
    def nbytes(self) -> int:
        return self.small.nbytes + self.cells.nbytes

    def best(self, vector: Vectors, number: int, wanted: int, allowed: Mask = ALL) -> Found:
        near, about = space_for(2 * number + 20)
        query, offsets = vector * self.small.scale, self.cells.offsets
        visit = suited(best_in_cells, (wanted + len(self._centres)) * len(vector))
        kept, compared = visit(self.small.numbers, query, self._centres, offsets, wanted, allowed, about, near)
        rows, scores = space_for(number)
        kept = suited(best_rows, kept * len(vector))(self.embeddings, vector, near[:kept], ALL, scores, rows)
        return Found(rows[:kept].astype(np.int64), scores[:kept], compared, self.method, len(self._centres))
