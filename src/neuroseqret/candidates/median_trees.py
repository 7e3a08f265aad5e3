r"""Median trees: a hash whose buckets stay small and keep near sequences together.

Each of M trees has a bit for every level l. Level l splits every bucket b of the level above by a direction of the
bucket, at the median of its own rows, so that the number of rows in a bucket halves with every bit, however close the
rows are:

.. math::
    bit_l(v) = [w_b \cdot v > \tau_b], \qquad \tau_b = \mathrm{median}\{w_b \cdot v_c : c \in b\}

Codes by planes through the origin cannot do this: a group of near sequences gets one code, whatever its size.

Directions are learned bucket by bucket. Let N be the pairs of a sequence and one of its `NEIGHBOURS` nearest. From
`choices` random directions, w_b is the one that keeps most pairs of N together, of those that bucket b holds:

.. math::
    w_b = \arg\max_w \sum_{(c, c') \in N \cap b^2} 2^{-a(c, c')} \, [bit_w(c) = bit_w(c')]

a(c, c') is the number of earlier trees that keep both together down to buckets of eight rows: the candidates of a query
are the union of its M buckets, so a pair that was found already counts less. Half of the random directions are drawn
from a normal distribution. The others are differences of two sequences of the bucket, which lie where these differ.

Bits r = m L, ..., m L + L - 1 of a code are the levels of tree m; a bucket table takes the first bits of one tree.
The first `own` levels have learned directions: at most `MAX_OWN`, and at least four sampled rows per bucket. All
buckets of a level below share one random direction and split at their own medians, and where there is less than one row
per bucket, at the median of all rows.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.codes import HashFunction, Rows, Vectors, check_embeddings
from neuroseqret.errors import UserError

NEIGHBOURS = 10
MAX_ROWS = 1 << 16  # that thresholds are learned from
MAX_PAIRS_OF = 1 << 13  # rows whose neighbours directions are learned from
MAX_OWN = 10  # levels whose buckets have directions of their own: 1,023 directions per tree
TIE = 1e-5  # a threshold keeps this distance from equal projections, so that rounding decides no bit
CHUNK = 1024  # rows whose directions are gathered at once
Buckets = npt.NDArray[np.int64]


class MedianTrees(HashFunction):
    """M trees of L levels, R = M L; see the module's docstring. With one choice per bucket, directions are random."""

    name = "trees"
    version: ClassVar[int] = 2

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
        trees, dimension = self.bits // self.levels, matrix.shape[1]
        grown = max(1, min(self.levels, int(np.log2(max(len(matrix), 2)))))
        own = min(self.levels, MAX_OWN, len(some).bit_length() - 2) if len(some) >= 4 else 0
        self.planes = np.empty((trees, (1 << own) - 1, dimension), np.float32)
        self.directions = _unit(rng.normal(size=(trees, self.levels - own, dimension)))
        self.medians = np.empty((trees, self.levels), np.float32)  # of all rows; 0 where buckets have directions
        self.thresholds = np.empty((trees, (1 << grown) - 1), np.float32)  # of every bucket, level after level
        found = np.zeros(len(pairs), np.int64)  # earlier trees that keep a pair together
        for tree in range(trees):
            weights = np.exp2(-found.astype(np.float64))
            self.planes[tree], together = learn_planes(some, pairs, weights, own, self.choices, rng)
            found += together
            bucket = np.zeros(len(matrix), np.int64)
            for level in range(self.levels):
                if level < own:
                    values, middle = _along(matrix, self.planes[tree], (1 << level) - 1 + bucket), np.float32(0)
                else:
                    values = matrix @ self.directions[tree, level - own]
                    middle = bucket_medians(values, np.zeros_like(bucket), 1)[0]
                self.medians[tree, level] = middle
                if level < grown:
                    split = bucket_medians(values, bucket, 1 << level)
                    split = np.where(np.isnan(split), middle, split)
                    self.thresholds[tree, (1 << level) - 1 : (2 << level) - 1] = split
                    bucket = 2 * bucket + (values > split[bucket])
        return self

    def margins(self, embeddings: Vectors) -> Vectors:
        """Return w . v - tau of the buckets that each vector passes through."""
        if not hasattr(self, "planes"):
            raise UserError("the trees are not fitted yet; call fit first")
        parts = [self._margins(embeddings[begin : begin + CHUNK]) for begin in range(0, len(embeddings), CHUNK)]
        return np.concatenate(parts) if parts else np.empty((0, self.bits), np.float32)

    def _margins(self, rows: Vectors) -> Vectors:
        n, (trees, levels) = len(rows), self.medians.shape
        margins = np.empty((n, trees, levels), np.float32)
        margins[:, :, self.own :] = np.einsum("nd,tld->ntl", rows, self.directions, optimize=True)
        margins[:, :, self.grown :] -= self.medians[:, self.grown :]
        bucket, tree = np.zeros((n, trees), np.int64), np.arange(trees)
        for level in range(self.grown):
            place = (1 << level) - 1 + bucket
            if level < self.own:
                margins[:, :, level] = np.einsum("nd,ntd->nt", rows, self.planes[tree, place])
            margins[:, :, level] -= self.thresholds[tree, place]
            bucket = 2 * bucket + (margins[:, :, level] > 0)
        return margins.reshape(n, self.bits)

    @property
    def own(self) -> int:
        """Levels whose buckets have directions of their own."""
        return int(self.planes.shape[1] + 1).bit_length() - 1

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
        return {name: getattr(self, name) for name in _ARRAYS}

    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        if state.keys() != set(_ARRAYS):
            raise UserError("the hash file is of an earlier version of the trees; create the index again")
        self.planes, self.directions, self.medians, self.thresholds = (state[name] for name in _ARRAYS)
        trees, dimension = self.bits // self.levels, self.planes.shape[-1]
        fits = (
            self.own <= self.grown <= self.levels
            and self.planes.shape == (trees, (1 << self.own) - 1, dimension)
            and self.directions.shape == (trees, self.levels - self.own, dimension)
            and self.medians.shape == (trees, self.levels)
            and self.thresholds.shape == (trees, (1 << self.grown) - 1)
        )
        if not fits:
            raise UserError("the arrays of the trees do not fit together; fit and save the hash function again")


_ARRAYS = ("planes", "directions", "medians", "thresholds")


def learn_planes(
    rows: Vectors, pairs: Rows, weights: npt.NDArray[np.float64], levels: int, choices: int, rng: np.random.Generator
) -> tuple[Vectors, npt.NDArray[np.bool_]]:
    """Return a direction for every bucket of one tree, and which pairs stay together down to buckets of eight rows."""
    planes = np.empty(((1 << levels) - 1, rows.shape[1]), np.float32)
    bucket = np.zeros(len(rows), np.int64)
    together = inside = np.ones(len(pairs), bool)
    place = np.empty(len(rows), np.int64)  # of a row in its bucket
    for level in range(levels):
        members = _by_bucket(bucket, 1 << level)
        held = _by_bucket(np.where(inside, bucket[pairs[:, 0]], 1 << level), (1 << level) + 1)
        for number, (mine, of_pairs) in enumerate(zip(members, held[:-1], strict=True)):
            drawn = _draw(rows[mine], choices, rng)
            best = 0
            if len(mine) > 1:
                projected = rows[mine] @ drawn
                whole = np.zeros(len(mine), np.int64)
                after = projected > np.array([bucket_medians(values, whole, 1)[0] for values in projected.T])
                place[mine] = np.arange(len(mine))
                first, second = place[pairs[of_pairs]].T
                best = int(np.argmax(weights[of_pairs] @ (after[first] == after[second])))
                bucket[mine] = 2 * number + after[:, best]
            else:
                bucket[mine] = 2 * number
            planes[(1 << level) - 1 + number] = drawn[:, best]
        inside = bucket[pairs[:, 0]] == bucket[pairs[:, 1]]
        if (8 << level) <= len(rows) // 2:  # buckets of a size that a search would visit
            together = inside
    return planes, together


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


def _by_bucket(bucket: Buckets, buckets: int) -> list[Buckets]:
    """Return the rows of every bucket."""
    order = np.argsort(bucket, kind="stable")
    return np.split(order, np.cumsum(np.bincount(bucket, minlength=buckets))[:-1])


def _along(rows: Vectors, planes: Vectors, place: Buckets) -> Vectors:
    """Return the dot product of every row with the plane at its place."""
    found = np.empty(len(rows), np.float32)
    for begin in range(0, len(rows), CHUNK):
        part = slice(begin, begin + CHUNK)
        found[part] = np.einsum("nd,nd->n", rows[part], planes[place[part]])
    return found


def _unit(drawn: npt.NDArray[np.float64]) -> Vectors:
    return np.asarray(drawn / np.linalg.norm(drawn, axis=-1, keepdims=True), np.float32)


def _draw(rows: Vectors, number: int, rng: np.random.Generator) -> Vectors:
    """Return (D, number) unit directions: normal ones, then differences of two of the rows."""
    drawn = rng.normal(size=(number, rows.shape[1]))
    half = number // 2
    if half and len(rows):
        one, other = rng.integers(len(rows), size=(2, half))
        differences = rows[one] - rows[other]
        usable = np.linalg.norm(differences, axis=1) > TIE
        drawn[number - half :][usable] = differences[usable]
    return _unit(drawn).T
