"""Batches of (anchor, positive) pairs for in-batch losses.

An anchor is a train query, or a corpus sequence as a pseudo-query. Its positive is a corpus sequence of the same
relevant set. Only train queries are used. A batch depends on nothing but seed and step, so a run that was interrupted
continues exactly as it would have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.errors import UserError

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class PairBatch:
    """Anchors and candidates; the first `len(queries)` anchors are queries, the others pseudo-queries."""

    queries: IntArray  # (Q,) rows of the queries
    pseudo: IntArray  # (P,) rows of the corpus that act as queries
    corpus: IntArray  # (C,) rows of the corpus: the candidates
    positive: BoolArray  # (Q + P, C) the candidate is relevant to the anchor
    ignore: BoolArray  # (Q + P, C) the candidate is the anchor itself
    sets: IntArray  # (Q + P,) relevant set of each anchor and of the candidate drawn for it, which comes first


class PairSampler:
    """Draws batches of `size` anchors, a share of them pseudo-queries, and one positive for each as candidate.

    `train` holds the rows of the queries to learn from. Pseudo-queries are corpus sequences: with `pseudo_from="train"`
    those that are relevant to a train query, with `"corpus"` any sequence that shares its group with another one. The
    groups of the corpus are known without any query. If relevance comes from qrels, there are no groups, and both
    choices are the same.

    With `negatives`, further corpus sequences are drawn as candidates until each anchor has as many that are not
    relevant to it. All anchors of a batch share them.
    """

    def __init__(
        self,
        relevance: Relevance,
        train: IntArray,
        *,
        size: int = 64,
        pseudo_share: float = 0.5,
        pseudo_from: Literal["train", "corpus"] = "corpus",
        negatives: int = 0,
        seed: int = 0,
    ) -> None:
        usable = train[relevance.counts[train] > 0]
        if not len(usable):
            raise UserError(
                "no train query has a relevant corpus sequence; check the columns 'split' and 'group', or the qrels"
            )
        self.train, self.size, self.negatives, self.seed = usable, size, negatives, seed
        self.pseudo = round(size * pseudo_share)
        self._corpus_size = relevance.corpus_size
        # A relevant set is a group or, without groups, the relevant rows of one query.
        if relevance.labels is not None and relevance.query_labels is not None:
            self._set_of_query = relevance.query_labels
            self._labels: IntArray | None = relevance.labels
            number = int(max(relevance.labels.max(initial=-1), relevance.query_labels.max(initial=-1))) + 1
            self._rows = np.argsort(relevance.labels, kind="stable")
            self._offsets = np.searchsorted(relevance.labels[self._rows], np.arange(number + 1))
        else:
            self._set_of_query, self._labels = np.arange(len(relevance)), None
            self._rows, self._offsets = relevance.rows, relevance.offsets
            self._keys = np.repeat(np.arange(len(relevance)), relevance.counts) * relevance.corpus_size + relevance.rows
        self._anchor_sets = self._set_of_query[usable]
        if pseudo_from == "corpus" and self._labels is not None:
            sizes = np.diff(self._offsets)
            self._pseudo_sets = self._labels[(self._labels >= 0) & (sizes[self._labels] > 1)]
        else:
            self._pseudo_sets = self._anchor_sets
        if not len(self._pseudo_sets):  # no two corpus sequences share a group, so only queries can be anchors
            self.pseudo = 0
        #: The groups that can be drawn, sorted; None if relevance has no groups.
        self.groups: IntArray | None = None
        if self._labels is not None:
            drawn = (self._anchor_sets, self._pseudo_sets) if self.pseudo else (self._anchor_sets,)
            self.groups = np.unique(np.concatenate(drawn))

    def batch(self, step: int) -> PairBatch:
        """Return the batch of a step."""
        rng = np.random.default_rng([self.seed, step])
        asked = self.size - self.pseudo
        queries = self._draw(self.train, asked, rng)
        pseudo_sets = self._draw(self._pseudo_sets, self.pseudo, rng)
        sets = np.concatenate([self._set_of_query[queries], pseudo_sets])
        corpus, pseudo = self._member(sets, rng), self._member(sets[asked:], rng)
        if self.negatives:
            corpus = np.concatenate([corpus, self._further(sets, rng)])
        positive = self._contains(sets, corpus)
        ignore = np.zeros_like(positive)
        ignore[asked:] = pseudo[:, None] == corpus
        return PairBatch(queries, pseudo, corpus, positive, ignore, sets)

    def outside(self, sets: IntArray, number: int, rng: np.random.Generator) -> IntArray:
        """Draw corpus rows that are not in each set, with replacement: (sets, number)."""
        every = ~self._contains(sets, np.arange(self._corpus_size))
        if not every.any(1).all():
            raise UserError("all corpus sequences are relevant to one query; there is nothing to tell apart")
        return np.stack([rng.choice(np.flatnonzero(free), number) for free in every])

    @staticmethod
    def _draw(values: IntArray, number: int, rng: np.random.Generator) -> IntArray:
        return values[rng.integers(0, len(values), number)]

    def _member(self, sets: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw one corpus row from each set."""
        begin, size = self._offsets[sets], np.diff(self._offsets)[sets]
        return self._rows[begin + (rng.random(len(sets)) * size).astype(np.int64)]

    def _further(self, sets: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw different corpus rows until `negatives` of them are outside each set, or there are no more."""
        order = rng.permutation(self._corpus_size)
        missing = (~self._contains(sets, order)).cumsum(1) < self.negatives
        return order[: int(missing.any(0).sum()) + 1]

    def _contains(self, sets: IntArray, corpus: IntArray) -> BoolArray:
        """Return whether each corpus row is in each set: (sets, corpus rows)."""
        if self._labels is not None:
            return sets[:, None] == self._labels[corpus]
        wanted = sets[:, None] * self._corpus_size + corpus
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found: BoolArray = self._keys[place] == wanted
        return found
