"""AP, nDCG@k and RR of every query, from a matrix of scores and the relevant candidates.

All of them follow from the ranks of the relevant candidates. A non-relevant candidate with the same score counts as
ranked higher, so ties never help: a model that gives every candidate the same score gets the worst value, not a lucky
one. Training validates with these functions as they are; evaluation first puts ties in a fair order (see `ties`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.measures.list_measures import ideal_gain

Floats = npt.NDArray[np.floating]


def relevant_ranks(scores: Floats, relevance: Relevance) -> npt.NDArray[np.int64]:
    """Return the ranks (from 1) of the relevant candidates, best first, query after query: (pairs,).

    `scores` is (queries, candidates), and its columns are the corpus of `relevance`. The ranks of query q lie between
    `relevance.offsets[q]` and `relevance.offsets[q + 1]`.
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
    """Count, for each pair of a row and a limit, the values of that row that are at most the limit."""
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
    """Count, for each relevant candidate, those of its query that score as high or higher, itself included."""
    last = np.flatnonzero(np.append((np.diff(sorted_values) != 0) | (np.diff(query) != 0), True))
    run_end = last[np.searchsorted(last, np.arange(len(sorted_values)))]
    return run_end + 1 - relevance.offsets[query]


def average_precision(scores: Floats, relevance: Relevance) -> Floats:
    r"""Return the AP of every query: :math:`\frac{1}{|R|} \sum_{k=1}^{|R|} k / \mathrm{rank}_k`.

    NaN for a query without relevant candidates.
    """
    ranks = relevant_ranks(scores, relevance)
    ordinal = np.arange(len(ranks)) - np.repeat(relevance.offsets[:-1], relevance.counts) + 1
    return _mean_by_query(ordinal / ranks, relevance)


def ndcg(scores: Floats, relevance: Relevance, k: int = 10) -> Floats:
    r"""Return the nDCG@k of every query with binary gains; NaN for a query without relevant candidates.

    That is :math:`\sum_{\mathrm{rank}_i \le k} 1 / \log_2(1 + \mathrm{rank}_i)` over its largest possible value.
    """
    ranks = relevant_ranks(scores, relevance)
    gain = np.where(ranks <= k, 1 / np.log2(1 + ranks), 0.0)
    return _mean_by_query(gain, relevance) * relevance.counts / ideal_gain(np.maximum(relevance.counts, 1), k)


def reciprocal_rank(scores: Floats, relevance: Relevance) -> Floats:
    """Return 1 / rank of the best relevant candidate of every query; NaN for a query without any."""
    ranks = relevant_ranks(scores, relevance)
    found = relevance.counts > 0
    values = np.full(len(relevance), np.nan)
    values[found] = 1 / ranks[relevance.offsets[:-1][found]]
    return values


def mean_average_precision(scores: Floats, relevance: Relevance) -> float:
    """Return the mean AP over the queries that have a relevant candidate; 0 if none has."""
    values = average_precision(scores, relevance)
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def precision_at_hits(scores: Floats, relevance: Relevance, k: int) -> Floats:
    r"""Return :math:`\frac{1}{|H|} \sum_{i=1}^{|H|} i / \mathrm{rank}_i` of every query, H the hits in the top k.

    The public code of the paper's authors calls this MAP. It is 0 for a query without a hit in the top k.
    """
    ranks = relevant_ranks(scores, relevance)
    query = np.repeat(np.arange(len(relevance)), relevance.counts)
    ordinal = np.arange(len(ranks)) - relevance.offsets[query] + 1  # ranks rise within a query
    hit = ranks <= k
    sums = np.bincount(query[hit], ordinal[hit] / ranks[hit], minlength=len(relevance))
    hits = np.bincount(query[hit], minlength=len(relevance))
    return sums / np.maximum(hits, 1)


def _mean_by_query(values: Floats, relevance: Relevance) -> Floats:
    sums = np.bincount(np.repeat(np.arange(len(relevance)), relevance.counts), values, minlength=len(relevance))
    with np.errstate(invalid="ignore"):
        return np.where(relevance.counts > 0, sums / np.maximum(relevance.counts, 1), np.nan)
