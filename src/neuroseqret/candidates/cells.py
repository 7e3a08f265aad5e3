"""Cells (inverted lists): k-means centres of the embeddings; each sequence is in the cell of its nearest centre.

The rows of the corpus lie cell by cell, so that a cell is a run of rows and scoring it reads memory in order. A query
visits the cells of its nearest centres until there are enough candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.arrays import open_array
from neuroseqret.candidates.codes import Vectors

IntArray = npt.NDArray[np.int64]
_CENTRES, _OFFSETS = "centres.npy", "cells.npy"


@dataclass(frozen=True)
class Cells:
    """C centres, and the run of rows that belongs to each."""

    centres: Vectors  # (C, D), unit length
    offsets: IntArray  # (C + 1,): cell c holds rows offsets[c] to offsets[c + 1] of the laid-out corpus

    @property
    def nbytes(self) -> int:
        return self.centres.nbytes + self.offsets.nbytes

    @classmethod
    def build(
        cls, embeddings: Vectors, cells: int | None = None, *, seed: int = 0
    ) -> tuple[Cells, npt.NDArray[np.int32]]:
        """Return the cells, and the order to lay the rows out in (rows of one cell keep their order)."""
        n = len(embeddings)
        centres, owner = two_level_centres(embeddings, min(cells or default_cells(n), max(n, 1)), seed=seed)
        order = np.argsort(owner, kind="stable").astype(np.int32)
        counts = np.bincount(owner, minlength=len(centres))
        return cls(centres, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)), order

    def save(self, folder: Path) -> None:
        """Write one `.npy` file per array."""
        np.save(folder / _CENTRES, self.centres)
        np.save(folder / _OFFSETS, self.offsets)

    @classmethod
    def open(cls, folder: Path) -> Cells:
        """Open what `save` wrote, as memory maps."""
        return cls(open_array(folder / _CENTRES), open_array(folder / _OFFSETS))

    def candidates(self, embedding: npt.NDArray[np.float32], wanted: int) -> tuple[IntArray, IntArray]:
        """Return begins and ends of the runs of rows to visit, nearest cell first, with at least `wanted` rows."""
        scores = self.centres @ embedding
        cells = len(scores)
        # Sort only as many cells as are usually needed; all of them if that was not enough.
        guess = min(cells, 2 * int(np.ceil(wanted * cells / max(int(self.offsets[-1]), 1))) + 8)
        while True:
            near = np.argpartition(-scores, guess - 1)[:guess] if guess < cells else np.arange(cells)
            near = near[np.lexsort((near, -scores[near]))]
            begins, stops = self.offsets[near], self.offsets[near + 1]
            reached = np.cumsum(stops - begins)
            number = int(np.searchsorted(reached, wanted)) + 1
            if number <= guess or guess == cells:
                return begins[:number], stops[:number]
            guess = cells


def default_cells(n: int) -> int:
    """Return about 4 sqrt(n): more cells find more neighbours at equal comparisons, but have more centres."""
    return max(1, round(4 * n**0.5))


def two_level_centres(embeddings: Vectors, cells: int, *, seed: int = 0) -> tuple[Vectors, npt.NDArray[np.int32]]:
    """Return about `cells` centres, and the cell of every row, by k-means in two levels.

    sqrt(cells) coarse centres cut the corpus. Each coarse cell gets fine centres in proportion to its size, so that
    cells have about the same size, and its rows go to the nearest of them. This takes O(n sqrt(cells)) dot products
    instead of the O(n cells) of flat k-means; recall at equal comparisons is the same within a point or two.
    """
    coarse = fit_centres(embeddings, max(1, round(cells**0.5)), seed=seed)
    owner = nearest_centres(embeddings, coarse)
    grouped = np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=len(coarse))
    stops = np.cumsum(counts)
    fine, cell, number = [], np.empty(len(embeddings), np.int32), 0
    for begin, stop in zip(stops - counts, stops, strict=True):
        rows = grouped[begin:stop]
        if not len(rows):
            continue
        part = np.ascontiguousarray(embeddings[rows], np.float32)
        centres = fit_centres(part, min(len(rows), max(1, round(cells * len(rows) / len(embeddings)))), seed=seed)
        cell[rows] = number + nearest_centres(part, centres)
        fine.append(centres)
        number += len(centres)
    return np.concatenate(fine) if fine else coarse, cell


def fit_centres(
    embeddings: Vectors, cells: int, *, seed: int = 0, iterations: int = 8, rows_per_cell: int = 64
) -> Vectors:
    """Return the centres of spherical k-means (Lloyd) on a sample; a centre without rows moves to a random row."""
    rng = np.random.default_rng(seed)
    n = len(embeddings)
    sample = np.sort(rng.choice(n, min(n, cells * rows_per_cell), replace=False))
    data = np.ascontiguousarray(embeddings[sample], np.float32)
    centres = data[np.sort(rng.choice(len(data), cells, replace=False))].copy()
    for _ in range(iterations):
        owner = nearest_centres(data, centres)
        order = np.argsort(owner, kind="stable")
        counts = np.bincount(owner, minlength=cells)
        begins = np.concatenate([[0], np.cumsum(counts)[:-1]])
        filled = counts > 0
        centres[filled] = np.add.reduceat(data[order], begins[filled], axis=0)
        centres[~filled] = data[rng.integers(0, len(data), int((~filled).sum()))]
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return centres


def nearest_centres(embeddings: Vectors, centres: Vectors) -> npt.NDArray[np.int32]:
    """Return for every row the centre with the largest dot product, of equal ones the first: (n,).

    This is not left to the BLAS library. Its threads would take all cores from the searches beside a rebuild, and where
    cores are busy, they spend several times as long waiting for one another as they compute.
    """
    owner = np.empty(len(embeddings), np.int32)
    _nearest(np.ascontiguousarray(embeddings, np.float32), np.ascontiguousarray(centres.T, np.float32), owner)
    return owner


@numba.njit(cache=True, nogil=True, fastmath=True)
def _nearest(rows, centres, owner):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Fill `owner`; `centres` are (D, C), so that the products with all centres are summed side by side."""
    dimension, cells = centres.shape
    scores = np.empty(cells, np.float32)
    fours = dimension // 4 * 4
    for row in range(len(rows)):
        scores[:] = 0
        for d in range(0, fours, 4):  # four at once: half of the time
            a, b, c, e = rows[row, d], rows[row, d + 1], rows[row, d + 2], rows[row, d + 3]
            of_a, of_b, of_c, of_e = centres[d], centres[d + 1], centres[d + 2], centres[d + 3]
            for cell in range(cells):
                scores[cell] += a * of_a[cell] + b * of_b[cell] + c * of_c[cell] + e * of_e[cell]
        for d in range(fours, dimension):
            a, of_a = rows[row, d], centres[d]
            for cell in range(cells):
                scores[cell] += a * of_a[cell]
        best = 0
        for cell in range(1, cells):
            if scores[cell] > scores[best]:
                best = cell
        owner[row] = best
