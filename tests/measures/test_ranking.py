from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import training as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures import ranking


def relevance_of(table: np.ndarray) -> Relevance:
    offsets = np.concatenate([[0], np.cumsum(table.sum(1))]).astype(np.int64)
    return Relevance(offsets, np.nonzero(table)[1].astype(np.int64), table.shape[1])


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 9), st.booleans())
def test_measures_are_the_naive_ones(seed, queries, candidates, ties):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 3, (queries, candidates)) / 2 if ties else rng.random((queries, candidates))
    table = rng.random((queries, candidates)) < 0.4
    relevance = relevance_of(table)
    rows = list(zip(scores.tolist(), table.tolist(), strict=True))
    np.testing.assert_allclose(
        ranking.average_precision(scores, relevance), [naive.average_precision(*r) for r in rows]
    )
    np.testing.assert_allclose(ranking.ndcg(scores, relevance, 3), [naive.ndcg(*r, 3) for r in rows])
    np.testing.assert_allclose(ranking.reciprocal_rank(scores, relevance), [naive.reciprocal_rank(*r) for r in rows])


def test_a_constant_score_is_the_worst_not_a_lucky_one():
    table = np.array([[True, False, False, False]])
    assert ranking.average_precision(np.zeros((1, 4)), relevance_of(table))[0] == pytest.approx(0.25)


def test_the_mean_skips_queries_without_relevant_ones():
    table = np.array([[True, False], [False, False]])
    assert ranking.mean_average_precision(np.array([[1.0, 0.0], [1.0, 0.0]]), relevance_of(table)) == 1.0
    assert ranking.mean_average_precision(np.zeros((1, 2)), relevance_of(table[1:])) == 0.0
