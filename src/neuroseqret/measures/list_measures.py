"""AP, nDCG and reciprocal rank of short lists that are sorted already: the best candidates of each query, best first.

A list need not hold every relevant sequence of the corpus, so AP and nDCG also take how many there are.
`ranking_measures` has the same measures for whole rankings.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import FloatArray, IntArray

Relevant = npt.NDArray[np.bool_]


def average_precision(relevant: Relevant, counts: IntArray) -> FloatArray:
    r"""Return the AP of each list: :math:`\frac{1}{\min(|R|, d)} \sum_{k \le d} [k \in R]\, \mathrm{precision}@k`.

    `relevant` (queries, d) says which places of a list hold a relevant candidate, `counts` (queries,) how many relevant
    candidates the corpus has. The sum is divided by the number that a list of d can hold, so a perfect list has AP 1.
    A query without relevant candidates has AP 0.
    """
    depth = relevant.shape[1]
    precision = np.cumsum(relevant, axis=1) / np.arange(1, depth + 1)
    values: FloatArray = (precision * relevant).sum(1) / np.maximum(np.minimum(counts, depth), 1)
    return values


def ndcg(relevant: Relevant, counts: IntArray, k: int = 10) -> FloatArray:
    """Return the nDCG@k of each list with binary gains; 0 for a query without relevant candidates.

    Shapes as in `average_precision`. A list shorter than k has nothing relevant in its missing places.
    """
    head = relevant[:, :k]
    gain = (head * discounts(k)[: head.shape[1]]).sum(1)
    values: FloatArray = gain / np.maximum(ideal_gain(counts, k), 1e-12)
    return values


def reciprocal_rank(relevant: Relevant) -> FloatArray:
    """Return 1 / (rank of the first relevant candidate) of each list; 0 for a list without any."""
    first: FloatArray = np.where(relevant.any(1), 1 / (1.0 + relevant.argmax(1)), 0.0)
    return first


def discounts(k: int) -> FloatArray:
    r"""Return the weights of the first k ranks in nDCG: :math:`1 / \log_2(1 + \mathrm{rank})`, (k,)."""
    weights: FloatArray = 1 / np.log2(np.arange(2, k + 2))
    return weights


def ideal_gain(counts: IntArray, k: int) -> FloatArray:
    """Return the DCG@k of a ranking with all `counts` relevant candidates at its top: (queries,)."""
    return np.concatenate([[0.0], np.cumsum(discounts(k))])[np.minimum(counts, k)]
