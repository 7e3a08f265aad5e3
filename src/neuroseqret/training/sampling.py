"""Batches of (anchor, positive) pairs for in-batch losses, every batch a function of (seed, step) alone.

An anchor is a train query or, as a pseudo-query, a corpus sequence that is relevant to some train query; its
positive is another corpus sequence relevant to the same train query. So nothing is ever learned about corpus
sequences that no train query speaks of. As a batch depends on nothing but seed and step, a run that was cut off
goes on exactly as it would have.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuroseqret.errors import UserError
from neuroseqret.relevance import Relevance
from neuroseqret.sequences import IntArray

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PairBatch:
    """Anchors against candidates: the first `len(queries)` anchors are queries, the others pseudo-queries."""

    queries: IntArray  # (Q,) rows of the queries
    pseudo: IntArray  # (P,) rows of the corpus that act as queries
    corpus: IntArray  # (C,) rows of the corpus: the candidates
    positive: BoolArray  # (Q + P, C) candidate is relevant to anchor
    ignore: BoolArray  # (Q + P, C) candidate is the anchor itself


class PairSampler:
    """Draws batches of `size` anchors, a share of them pseudo-queries, with one positive each as candidate.

    `train` are the rows of the queries to learn from. Groups are drawn in proportion to
    (number of their train queries) ** `balance`: 1 draws queries evenly, 0 draws groups evenly. `per_group` anchors
    in a row share their train query's relevant set, which gives batches with several sequences of a group.
    """

    def __init__(
        self,
        relevance: Relevance,
        train: IntArray,
        *,
        size: int = 64,
        pseudo_share: float = 0.5,
        balance: float = 1.0,
        per_group: int = 1,
        seed: int = 0,
    ) -> None:
        usable = train[relevance.counts[train] > 0]
        if not len(usable):
            raise UserError(
                "no train query has a relevant corpus sequence; check 'split', 'group' or the qrels of the data"
            )
        self.relevance, self.train = relevance, usable
        self.size, self.seed, self.per_group = size, seed, per_group
        self.pseudo = round(size * pseudo_share)
        labels = relevance.query_labels[usable] if relevance.query_labels is not None else np.arange(len(usable))
        _, group, number = np.unique(labels, return_inverse=True, return_counts=True)
        weight = number[group] ** (balance - 1.0)
        self._cumulative = np.cumsum(weight) / weight.sum()
        if relevance.labels is None:  # no groups: relevance is looked up among (query, row) keys, sorted as rows are
            keys = np.repeat(np.arange(len(relevance)), relevance.counts) * relevance.corpus_size + relevance.rows
            self._keys: IntArray | None = keys
        else:
            self._keys = None

    def batch(self, step: int) -> PairBatch:
        """The batch of a step."""
        rng = np.random.default_rng([self.seed, step])
        number = -(-self.size // self.per_group)
        drawn = self.train[np.minimum(np.searchsorted(self._cumulative, rng.random(number)), len(self.train) - 1)]
        owners = rng.permutation(np.repeat(drawn, self.per_group)[: self.size])
        corpus = self._relevant(owners, rng)
        pseudo = self._relevant(owners[self.size - self.pseudo :], rng)
        positive = self.is_relevant(owners, corpus)
        ignore = np.zeros_like(positive)
        ignore[self.size - self.pseudo :] = pseudo[:, None] == corpus
        return PairBatch(owners[: self.size - self.pseudo], pseudo, corpus, positive, ignore)

    def _relevant(self, owners: IntArray, rng: np.random.Generator) -> IntArray:
        """One relevant corpus row for each query."""
        counts = self.relevance.counts[owners]
        return self.relevance.rows[self.relevance.offsets[owners] + (rng.random(len(owners)) * counts).astype(np.int64)]

    def is_relevant(self, queries: IntArray, corpus: IntArray) -> BoolArray:
        """(queries, corpus) truth table of the given rows."""
        if self._keys is None:
            assert self.relevance.query_labels is not None
            assert self.relevance.labels is not None
            return self.relevance.query_labels[queries][:, None] == self.relevance.labels[corpus]
        wanted = queries[:, None] * self.relevance.corpus_size + corpus
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found: BoolArray = self._keys[place] == wanted
        return found
