"""The ways from a query's embedding to the best rows of the corpus: one class each, same verb.

`best(vector, number, wanted, allowed)` gives rows and scores of the best `number`, and how many embeddings were
compared. `wanted` is how many rows to look at (more where the structure holds more), `allowed` a mask over all rows,
empty for all of them.
"""

from __future__ import annotations

import threading
from typing import Protocol

import numpy as np
import numpy.typing as npt

from neuroseqret.candidates import BucketTables, Cells, HashFunction, nearest_codes, nearest_of, pack_bits
from neuroseqret.candidates.bucket_tables import Workspace
from neuroseqret.candidates.kernels import best_in_cells, best_in_runs, best_rows
from neuroseqret.candidates.rounding import RoundedVectors, rounded

Rows = npt.NDArray[np.int32]
Vector = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Found = tuple[Rows, Vector, int]
ALL: Mask = np.empty(0, bool)
#: Below this many rows comparing with all of them takes a fraction of a millisecond and loses nothing.
EXHAUSTIVE_BELOW = 20_000


def chosen_method(setting: str, rows: int) -> str:
    """`auto` settled by the corpus' size; cells keep most at equal comparisons (see docs/index-measurements.md)."""
    if setting != "auto":
        return setting
    return "exhaustive" if rows < EXHAUSTIVE_BELOW else "cells"


def _room(number: int) -> tuple[Rows, Vector]:
    return np.empty(number, np.int32), np.empty(number, np.float32)


class Finder(Protocol):
    @property
    def method(self) -> str: ...

    def best(self, vector: Vector, number: int, wanted: int, allowed: Mask = ALL) -> Found: ...


class Exhaustive:
    """Every row, in memory order."""

    method = "exhaustive"

    def __init__(self, embeddings: npt.NDArray[np.float32]) -> None:
        self.embeddings = embeddings

    def best(self, vector: Vector, number: int, wanted: int = 0, allowed: Mask = ALL) -> Found:
        rows, scores = _room(number)
        begins, stops = np.array([0]), np.array([len(self.embeddings)])
        kept, compared = best_in_runs(self.embeddings, vector, begins, stops, allowed, scores, rows)
        return rows[:kept], scores[:kept], compared


class CellFinder:
    """The cells of the nearest centres: their rows by rounded embeddings, the best of them by the exact ones."""

    method = "cells"

    def __init__(self, embeddings: npt.NDArray[np.float32], small: RoundedVectors, cells: Cells) -> None:
        self.embeddings, self.small, self.cells = embeddings, small, cells
        self._centres = rounded(cells.centres, small.scale)

    def best(self, vector: Vector, number: int, wanted: int, allowed: Mask = ALL) -> Found:
        near, about = _room(2 * number + 20)
        query, offsets = vector * self.small.scale, self.cells.offsets
        kept, compared = best_in_cells(self.small.numbers, query, self._centres, offsets, wanted, allowed, about, near)
        rows, scores = _room(number)
        kept = best_rows(self.embeddings, vector, near[:kept], ALL, scores, rows)
        return rows[:kept], scores[:kept], compared + len(self._centres)


class CodeFinder:
    """Candidates by hash code: all codes by Hamming distance, or the union of buckets cut down by it.

    Where groups fill whole buckets a union can be many times what is wanted; the nearest codes of it stay.
    """

    def __init__(
        self,
        embeddings: npt.NDArray[np.float32],
        hash_function: HashFunction,
        codes: npt.NDArray[np.uint64],
        tables: BucketTables | None = None,
    ) -> None:
        self.method = "hamming" if tables is None else "buckets"
        self.embeddings, self.hash, self.codes, self.tables = embeddings, hash_function, codes, tables
        self._spaces = threading.local()  # one workspace a thread

    def candidates(self, vector: Vector, wanted: int) -> Rows:
        margins = self.hash.margins(vector[None])[0]
        code = pack_bits(margins[None] > 0)[0]
        if self.tables is not None:
            if not hasattr(self._spaces, "space"):
                self._spaces.space = Workspace.of(len(self.codes))
            found = self.tables.candidates(code, margins, wanted, workspace=self._spaces.space)
            if len(found) >= min(wanted, len(self.codes)):
                return nearest_of(self.codes, code, found, wanted)
        return nearest_codes(self.codes, code, wanted)

    def best(self, vector: Vector, number: int, wanted: int, allowed: Mask = ALL) -> Found:
        candidates = self.candidates(vector, wanted)
        rows, scores = _room(number)
        kept = best_rows(self.embeddings, vector, candidates, allowed, scores, rows)
        compared = len(candidates) if not len(allowed) else int(allowed[candidates].sum())
        return rows[:kept], scores[:kept], compared
