"""Quality of a ranking from a matrix of scores, for validation inside training: AP, nDCG@k and RR of every query.

A relevant candidate's rank counts every non-relevant one with the same or a higher score before it, so that ties
never help (a model that scores everything alike gets the worst value, not a lucky one). Final figures come from
the evaluation room; these agree with them where there are no ties.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance

Floats = npt.NDArray[np.floating]


def relevant_ranks(scores: Floats, relevance: Relevance) -> npt.NDArray[np.int64]:
    """Ranks (from 1) of the relevant candidates, best first, row after row as in `relevance.offsets`: (pairs,).

    `scores` is (queries, candidates); the candidates are the corpus of `relevance`.
    """
    query = np.repeat(np.arange(len(relevance)), relevance.counts)
    begin = relevance.offsets[query]
    mine = -np.asarray(scores)[query, relevance.rows]  # negated: better is smaller
    order = np.lexsort((mine, query))
    mine = mine[order]
    ordinal = np.arange(len(mine)) - begin  # how many relevant ones are ahead
    above = _count_not_above(-np.asarray(scores), query, mine)
    tied_or_better = _count_not_above_own(mine, query, relevance)
    return above - tied_or_better + ordinal + 1


def _count_not_above(values: Floats, rows: npt.NDArray[np.int64], limits: Floats) -> npt.NDArray[np.int64]:
    """For each (row, limit): how many values of that row are <= limit."""
    counts = np.empty(len(rows), np.int64)
    cuts = np.searchsorted(rows, np.arange(len(values) + 1))
    for row in range(len(values)):
        part = slice(cuts[row], cuts[row + 1])
        if cuts[row] < cuts[row + 1]:
            counts[part] = np.searchsorted(np.sort(values[row]), limits[part], side="right")
    return counts


def _count_not_above_own(
    sorted_values: Floats, query: npt.NDArray[np.int64], relevance: Relevance
) -> npt.NDArray[np.int64]:
    """For each relevant candidate: how many relevant ones of its query score as well or better (itself included)."""
    last = np.flatnonzero(np.append((np.diff(sorted_values) != 0) | (np.diff(query) != 0), True))
    run_end = last[np.searchsorted(last, np.arange(len(sorted_values)))]
    return run_end + 1 - relevance.offsets[query]


def average_precision(scores: Floats, relevance: Relevance) -> Floats:
    r"""AP of every query: :math:`\frac{1}{|R|} \sum_{k=1}^{|R|} k / \mathrm{rank}_k`; NaN without relevant ones."""
    ranks = relevant_ranks(scores, relevance)
    ordinal = np.arange(len(ranks)) - np.repeat(relevance.offsets[:-1], relevance.counts) + 1
    return _mean_by_query(ordinal / ranks, relevance)


def ndcg(scores: Floats, relevance: Relevance, k: int = 10) -> Floats:
    """nDCG@k of every query with binary gains; NaN without relevant ones."""
    ranks = relevant_ranks(scores, relevance)
    gain = np.where(ranks <= k, 1 / np.log2(1 + ranks), 0.0)
    ideal = np.cumsum(1 / np.log2(np.arange(2, k + 2)))[np.minimum(np.maximum(relevance.counts, 1), k) - 1]
    return _mean_by_query(gain, relevance) * relevance.counts / ideal


def reciprocal_rank(scores: Floats, relevance: Relevance) -> Floats:
    """1 / rank of the best relevant candidate of every query; NaN without relevant ones."""
    ranks = relevant_ranks(scores, relevance)
    found = relevance.counts > 0
    values = np.full(len(relevance), np.nan)
    values[found] = 1 / ranks[relevance.offsets[:-1][found]]
    return values


def mean_average_precision(scores: Floats, relevance: Relevance) -> float:
    """Mean of AP over the queries that have something relevant; 0 if none has."""
    values = average_precision(scores, relevance)
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def _mean_by_query(values: Floats, relevance: Relevance) -> Floats:
    sums = np.bincount(np.repeat(np.arange(len(relevance)), relevance.counts), values, minlength=len(relevance))
    with np.errstate(invalid="ignore"):
        return np.where(relevance.counts > 0, sums / np.maximum(relevance.counts, 1), np.nan)
