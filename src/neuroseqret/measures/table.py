"""The measures that reports show, one value per query.

AP, nDCG@10, nDCG@20 and RR are those of ir-measures: same names, same definitions, same values. ir-measures takes
rankings as dictionaries, which costs 41 ms per query at 42,000 sequences. `ranking_measures` computes the same from
the ranks of the relevant sequences in about 1 ms, and the tests compare the two.

`AP@10/hits` is what the public code of the paper's authors calls MAP: the sum of the precisions at the hits in the top
10, divided by the number of these hits instead of the number of all relevant sequences. A list with a single hit at
the top gets 1, whatever it missed, so this measure stands beside AP and never replaces it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import FloatArray
from neuroseqret.measures import ranking_measures as ranks

#: The measures in the order of tables. All lie between 0 and 1; higher is better.
MEASURES = ("AP", "nDCG@10", "nDCG@20", "RR", "AP@10/hits")


def per_query(scores: npt.NDArray[Any], relevance: Relevance) -> dict[str, FloatArray]:
    """Return every measure of every query, by name: (queries,) each.

    `scores` (queries, candidates) rank the corpus of `relevance`. They must have no ties (see `ties.order_keys`), and
    every query needs a relevant candidate.
    """
    values = {
        "AP": ranks.average_precision(scores, relevance),
        "nDCG@10": ranks.ndcg(scores, relevance, 10),
        "nDCG@20": ranks.ndcg(scores, relevance, 20),
        "RR": ranks.reciprocal_rank(scores, relevance),
        "AP@10/hits": ranks.precision_at_hits(scores, relevance, 10),
    }
    return {name: value.astype(np.float64) for name, value in values.items()}
