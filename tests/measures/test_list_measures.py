"""AP and nDCG of sorted lists against plain loops, and against the measures of whole rankings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import measures as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures import list_measures as lists
from neuroseqret.measures import ranking_measures as ranks


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12))
def test_lists_are_measured_like_the_loops(seed, depth, k):
    rng = np.random.default_rng(seed)
    relevant = rng.random((5, depth)) < 0.4
    counts = relevant.sum(1) + rng.integers(0, 4, 5)  # some relevant sequences are not on the list
    precision, gain = lists.average_precision(relevant, counts), lists.ndcg(relevant, counts, k)
    for query, row in enumerate(relevant.tolist()):
        number = int(counts[query])
        holds = min(number, depth)
        assert precision[query] == pytest.approx(naive.average_precision(row, holds) if number else 0)
        assert gain[query] == pytest.approx(naive.ndcg(row, number, k) if number else 0)


def test_a_list_of_the_whole_corpus_is_a_ranking():
    rng = np.random.default_rng(0)
    scores, table = rng.random((6, 40)), rng.random((6, 40)) < 0.2
    offsets = np.concatenate([[0], np.cumsum(table.sum(1))]).astype(np.int64)
    truth = Relevance(offsets, np.nonzero(table)[1].astype(np.int64), 40)
    relevant = np.take_along_axis(table, np.argsort(-scores, axis=1), 1)
    np.testing.assert_allclose(lists.average_precision(relevant, truth.counts), ranks.average_precision(scores, truth))
    np.testing.assert_allclose(lists.ndcg(relevant, truth.counts, 10), ranks.ndcg(scores, truth, 10))
