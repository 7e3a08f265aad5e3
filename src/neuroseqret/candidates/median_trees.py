r"""Median trees: a hash whose buckets stay small and keep near sequences together.

Each of M trees has a direction w_l and a bit for every level l. Level l splits every bucket b of the level above at the
median of its own rows, so that the number of rows in a bucket halves with every bit, however close the rows are:

.. math::
    bit_l(v) = [w_l \cdot v > \tau_{l, b}], \qquad \tau_{l, b} = \mathrm{median}\{w_l \cdot v_c : c \in b\}

Codes by planes through the origin cannot do this: a group of near sequences gets one code, whatever its size.

Directions are learned level by level. Let N be the pairs of a sequence and one of its `NEIGHBOURS` nearest. From
`choices` random directions, w_l is the one that keeps most pairs of N together, counting those that are still in one
bucket of this tree:

.. math::
    w_l = \arg\max_w \sum_{(c, c') \in N, \, b(c) = b(c')} 2^{-a(c, c')} \, [bit_w(c) = bit_w(c')]

a(c, c') is the number of earlier trees that keep both together down to buckets of eight rows: the candidates of a query
are the union of its M buckets, so a pair that was found already counts less. Half of the random directions are drawn
from a normal distribution. The others are differences of two sequences, which lie where the sequences differ.

Bits r = m L, ..., m L + L - 1 of a code are the levels of tree m; a bucket table takes the first bits of one tree.
Levels below the last one that has at least one row per bucket split at the median of all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.codes import HashFunction, Rows, Vectors, check_embeddings
from neuroseqret.errors import UserError

NEIGHBOURS = 10
MAX_ROWS = 1 << 16  # that thresholds are learned from
MAX_PAIRS_OF = 4096  # rows whose neighbours directions are learned from
TIE = 1e-5  # a threshold keeps this distance from equal projections, so that rounding decides no bit
Buckets = npt.NDArray[np.int64]


class MedianTrees(HashFunction):
    """M trees of L levels, R = M L; see the module's docstring. With one choice per level, directions are random."""

    name = "trees"

    def __init__(self, bits: int = 160, levels: int = 16, choices: int = 16) -> None:
        super().__init__(bits)
        if not 1 <= levels <= 24 or bits % levels:
            raise UserError(f"the bits must be trees times levels (at most 24), but {bits} is no multiple of {levels}")
        if choices < 1:
            raise UserError(f"there must be at least one direction to choose from, not {choices}")
        self.levels, self.choices = levels, choices

    def settings(self) -> dict[str, Any]:
        return {"bits": self.bits, "levels": self.levels, "choices": self.choices}

    def fit(self, embeddings: Vectors, *, seed: int = 0) -> Self:
        """Learn directions from a sample of rows and their neighbours, and medians from a larger one."""
        rng = np.random.default_rng(seed)
        matrix = check_embeddings(embeddings)
        if len(matrix) > MAX_ROWS:
            matrix = matrix[np.sort(rng.choice(len(matrix), MAX_ROWS, replace=False))]
        some = matrix
        if len(matrix) > MAX_PAIRS_OF:
            some = matrix[np.sort(rng.choice(len(matrix), MAX_PAIRS_OF, replace=False))]
        pairs = nearest_pairs(some, NEIGHBOURS)
        trees = self.bits // self.levels
        grown = max(1, min(self.levels, int(np.log2(max(len(matrix), 2)))))
        self.directions = np.empty((matrix.shape[1], self.bits), np.float32)
        self.medians = np.empty((trees, self.levels), np.float32)  # of all rows
        self.thresholds = np.empty((trees, (1 << grown) - 1), np.float32)  # of every bucket, level after level
        found = np.zeros(len(pairs), np.int64)  # earlier trees that keep a pair together
        for tree in range(trees):
            learned = self._learn(some, pairs, np.exp2(-found.astype(np.float64)), rng)
            self.directions[:, tree * self.levels : (tree + 1) * self.levels] = learned
            projected = matrix @ learned
            bucket = np.zeros(len(matrix), np.int64)
            for level in range(self.levels):
                values = projected[:, level]
                self.medians[tree, level] = middle = bucket_medians(values, np.zeros_like(bucket), 1)[0]
                if level < grown:
                    split = bucket_medians(values, bucket, 1 << level)
                    split = np.where(np.isnan(split), middle, split)
                    self.thresholds[tree, (1 << level) - 1 : (2 << level) - 1] = split
                    bucket = 2 * bucket + (values > split[bucket])
            found += self._together
        return self

    def _learn(self, rows: Vectors, pairs: Rows, weights: npt.NDArray[np.float64], rng: np.random.Generator) -> Vectors:
        """Return the (D, L) directions of one tree; leave in `_together` which pairs its last full level keeps."""
        bucket = np.zeros(len(rows), np.int64)
        first, second = pairs.T
        together = np.ones(len(pairs), bool)
        self._together = together
        chosen = np.empty((rows.shape[1], self.levels), np.float32)
        for level in range(self.levels):
            drawn = _draw(rows, bucket, self.choices, rng)
            projected = rows @ drawn
            if (2 << level) > len(rows) // 2:  # too few rows per bucket to tell directions apart
                chosen[:, level] = drawn[:, 0]
                continue
            kept = []
            for values in projected.T:
                split = np.nan_to_num(bucket_medians(values, bucket, 1 << level))
                kept.append(2 * bucket + (values > split[bucket]))
            scores = [np.sum(weights * (together & (after[first] == after[second]))) for after in kept]
            best = int(np.argmax(scores))
            chosen[:, level], bucket = drawn[:, best], kept[best]
            together = bucket[first] == bucket[second]
            if (8 << level) <= len(rows) // 2:  # buckets of a size that a search would visit
                self._together = together
        return chosen

    def margins(self, embeddings: Vectors) -> Vectors:
        """Return w_l . v - tau of the buckets that each vector passes through."""
        if not hasattr(self, "directions"):
            raise UserError("the trees are not fitted yet; call fit first")
        n, (trees, levels) = len(embeddings), self.medians.shape
        margins = np.asarray(embeddings @ self.directions, np.float32).reshape(n, trees, levels)
        margins[:, :, self.grown :] -= self.medians[:, self.grown :]
        bucket, tree = np.zeros((n, trees), np.int64), np.arange(trees)
        for level in range(self.grown):
            margins[:, :, level] -= self.thresholds[tree, (1 << level) - 1 + bucket]
            bucket = 2 * bucket + (margins[:, :, level] > 0)
        return margins.reshape(n, self.bits)

    @property
    def grown(self) -> int:
        """Levels that have a threshold per bucket."""
        return int(self.thresholds.shape[1] + 1).bit_length() - 1

    def table_positions(self, tables: int, seed: int = 0) -> Rows:
        """Return the bits of one tree per table; there must be a tree for every table."""
        trees = self.bits // self.levels
        if tables > trees:
            raise UserError(f"there are {trees} trees for {tables} bucket tables; ask for at most {trees} tables")
        return np.arange(tables * self.levels, dtype=np.int32).reshape(tables, self.levels)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"directions": self.directions, "medians": self.medians, "thresholds": self.thresholds}

    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        self.directions, self.medians, self.thresholds = (
            state[name] for name in ("directions", "medians", "thresholds")
        )
        trees, size = self.bits // self.levels, self.thresholds.shape[-1] + 1
        whole = self.directions.shape[1:] == (self.bits,) and self.medians.shape == (trees, self.levels)
        if not whole or self.thresholds.shape != (trees, size - 1) or size & (size - 1) or self.grown > self.levels:
            raise UserError("the arrays of the trees do not fit together; fit and save the hash function again")


def bucket_medians(values: Vectors, bucket: Buckets, buckets: int) -> Vectors:
    """Return a threshold per bucket with half of its rows above it (of 2 k + 1 rows, k + 1); NaN if fewer than two."""
    order = np.lexsort((values, bucket))
    counts = np.bincount(bucket, minlength=buckets)
    starts = np.cumsum(counts) - counts
    found = np.full(buckets, np.nan, np.float32)
    many = counts > 1
    middle = starts[many] + counts[many] // 2
    below, above = values[order[middle - 1]], values[order[middle]]
    found[many] = np.where(above - below > 2 * TIE, (below + above) / 2, below - TIE)
    return found


def nearest_pairs(rows: Vectors, number: int, chunk: int = 1024) -> Rows:
    """Return (row, neighbour) for the `number` nearest of every row by dot product, itself left out."""
    number = min(number, len(rows) - 1)
    if number < 1:
        return np.empty((0, 2), np.int32)
    found = []
    for begin in range(0, len(rows), chunk):
        scores = rows[begin : begin + chunk] @ rows.T
        mine = np.arange(begin, begin + len(scores))
        scores[mine - begin, mine] = -np.inf
        nearest = np.argpartition(-scores, number - 1, axis=1)[:, :number]
        found.append(np.stack([np.repeat(mine, number), nearest.ravel()], axis=1))
    return np.concatenate(found).astype(np.int32)


def _draw(rows: Vectors, bucket: Buckets, number: int, rng: np.random.Generator) -> Vectors:
    """Return (D, number) unit directions: normal ones, then differences of two rows of one bucket."""
    drawn = rng.normal(size=(number, rows.shape[1]))
    half = number // 2
    if half:
        order = np.argsort(bucket, kind="stable")  # rows of a bucket lie together
        counts = np.bincount(bucket)
        starts = np.cumsum(counts) - counts
        one = rng.integers(len(rows), size=half)
        place = starts[bucket[one]] + rng.integers(counts[bucket[one]])
        differences = rows[one] - rows[order[place]]
        usable = np.linalg.norm(differences, axis=1) > TIE
        drawn[number - half :][usable] = differences[usable]
    return np.asarray((drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).T, np.float32)
