"""The measures of a ranking, one value a query.

AP, nDCG@10, nDCG@20 and RR are those of ir-measures: same names, same definitions, same values. Handing whole
rankings of a corpus to ir-measures as dictionaries takes 41 ms a query at 42,000 sequences, so they are computed
from the ranks of the relevant sequences (`neuroseqret.measures.ranking`, about 1 ms), and the tests hold the two
equal. `AP@10/hits` is what the public code of the paper's authors calls MAP: the sum of the precisions at the hits
in the top 10, divided by the number of those hits rather than of all relevant sequences. It is 1 for a list with a
single hit at the top, whatever it missed, so it is shown beside AP and never in its place.

Scores must be free of ties (see `neuroseqret.measures.ties`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import FloatArray
from neuroseqret.measures import ranking

#: The measures in the order of tables; all lie between 0 and 1, and higher is better.
MEASURES = ("AP", "nDCG@10", "nDCG@20", "RR", "AP@10/hits")


def per_query(scores: npt.NDArray[Any], relevance: Relevance) -> dict[str, FloatArray]:
    """Every measure of every query: name -> (queries,).

    `scores` (queries, candidates) rank the corpus of `relevance`. Every query needs something relevant.
    """
    values = {
        "AP": ranking.average_precision(scores, relevance),
        "nDCG@10": ranking.ndcg(scores, relevance, 10),
        "nDCG@20": ranking.ndcg(scores, relevance, 20),
        "RR": ranking.reciprocal_rank(scores, relevance),
        "AP@10/hits": precision_at_hits(scores, relevance, 10),
    }
    return {name: value.astype(np.float64) for name, value in values.items()}


def precision_at_hits(scores: npt.NDArray[Any], relevance: Relevance, k: int) -> FloatArray:
    r"""The authors' "MAP": :math:`\frac{1}{|H|} \sum_{i=1}^{|H|} i / \mathrm{rank}_i`, H the hits in the top k.

    0 for a query without a hit in the top k.
    """
    ranks = ranking.relevant_ranks(scores, relevance)
    query = np.repeat(np.arange(len(relevance)), relevance.counts)
    ordinal = np.arange(len(ranks)) - relevance.offsets[query] + 1  # ranks rise within a query
    hit = ranks <= k
    sums = np.bincount(query[hit], ordinal[hit] / ranks[hit], minlength=len(relevance))
    hits = np.bincount(query[hit], minlength=len(relevance))
    return sums / np.maximum(hits, 1)
