"""Ranked lists: the best candidates of each query, which a second stage learns from and reorders."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.data.splits import sample_negatives
from neuroseqret.errors import UserError
from neuroseqret.measures.list_measures import average_precision, ndcg, reciprocal_rank

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class RankedLists:
    """The `depth` best candidates of each query, best first."""

    rows: IntArray  # (Q,) rows of the queries
    candidates: IntArray  # (Q, depth) rows of the corpus
    scores: Floats  # (Q, depth) of the first stage
    relevant: npt.NDArray[np.bool_]  # (Q, depth)
    counts: IntArray  # (Q,) relevant sequences in the whole corpus

    def head(self, queries: int, depth: int) -> RankedLists:
        """Return the first `queries` lists, cut to their first `depth` candidates."""
        return RankedLists(
            self.rows[:queries],
            self.candidates[:queries, :depth],
            self.scores[:queries, :depth],
            self.relevant[:queries, :depth],
            self.counts[:queries],
        )


def rank(scores: Floats, rows: IntArray, relevance: Relevance, depth: int) -> RankedLists:
    """Make lists from the first-stage scores (Q, corpus) of some query rows."""
    best = best_first(scores, depth)
    truth = np.zeros(best.shape, bool)
    for k, row in enumerate(rows):
        answers = relevance.of(row)
        place = np.minimum(np.searchsorted(answers, best[k]), max(len(answers) - 1, 0))
        truth[k] = answers[place] == best[k] if len(answers) else False
    return RankedLists(rows, best, np.take_along_axis(scores, best, 1), truth, relevance.counts[rows])


def mixed(rows: IntArray, relevance: Relevance, relevant: int, depth: int, rng: np.random.Generator) -> RankedLists:
    """Return lists of random candidates in random order, with at most `relevant` relevant ones for each query."""
    candidates = sample_negatives(relevance, rows, depth, rng, replace=True)
    truth = np.zeros(candidates.shape, bool)
    for k, row in enumerate(rows):
        answers = rng.permutation(relevance.of(row))[:relevant]
        candidates[k, : len(answers)], truth[k, : len(answers)] = answers, True
    order = rng.permuted(np.broadcast_to(np.arange(depth), candidates.shape), axis=1)
    candidates, truth = (np.take_along_axis(table, order, 1) for table in (candidates, truth))
    return RankedLists(rows, candidates, np.zeros(candidates.shape, np.float32), truth, truth.sum(1))


def best_first(scores: Floats, depth: int) -> IntArray:
    """Return the columns of the `depth` highest scores of each row, best first, ties by column: (Q, depth)."""
    depth = min(depth, scores.shape[1])
    if depth == scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")
    # Everything above the limit, and as many columns tied with it as fit, in the order of the columns.
    limit = np.partition(scores, scores.shape[1] - depth, axis=1)[:, scores.shape[1] - depth, None]
    above, tied = scores > limit, scores == limit
    room = depth - above.sum(1, keepdims=True)
    chosen = above | (tied & (np.cumsum(tied, axis=1) <= room))
    columns = np.nonzero(chosen)[1].reshape(len(scores), depth)
    order = np.argsort(-np.take_along_axis(scores, columns, 1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, 1)


def list_average_precision(scores: Floats, lists: RankedLists) -> npt.NDArray[np.float64]:
    """AP of each list in the order of `scores`, over the relevant ones that the list can hold: (Q,)."""
    return average_precision(_in_order(scores, lists), lists.counts)


def list_ndcg(scores: Floats, lists: RankedLists, depth: int = 10) -> npt.NDArray[np.float64]:
    """nDCG@depth of each list in the order of `scores`: (Q,)."""
    return ndcg(_in_order(scores, lists), lists.counts, depth)


def list_reciprocal_rank(scores: Floats, lists: RankedLists) -> npt.NDArray[np.float64]:
    """Reciprocal rank of each list in the order of `scores`, 0 if it holds nothing relevant: (Q,)."""
    return reciprocal_rank(_in_order(scores, lists))


def _in_order(scores: Floats, lists: RankedLists) -> npt.NDArray[np.bool_]:
    return np.take_along_axis(lists.relevant, np.argsort(-scores, axis=1, kind="stable"), 1)


def lift(first: Floats, best: IntArray, second: Floats) -> Floats:
    """Return the whole ranking as scores: the listed candidates first, in the order of the second stage.

    `first` is (Q, corpus); `best` and `second` are (Q, depth). A listed candidate gets its rank from the end (1 is the
    last one); the others get their first-stage score minus the highest of the query, which is at most 0.
    """
    if not np.isfinite(second).all():
        raise UserError("a second-stage score is not finite; look for extreme times in the sequences")
    lifted = first - first.max(1, keepdims=True)
    rank_from_end = np.empty(best.shape, first.dtype)
    order = np.argsort(-second, axis=1, kind="stable")
    np.put_along_axis(rank_from_end, order, np.arange(best.shape[1], 0, -1, dtype=first.dtype)[None], 1)
    np.put_along_axis(lifted, best, rank_from_end, 1)
    return lifted
