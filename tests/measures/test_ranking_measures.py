"""Measures from scores against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import measures as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures import ranking_measures as ranks


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
    ordered = [naive.worst_order(*row) for row in zip(scores.tolist(), table.tolist(), strict=True)]
    counts = table.sum(1).tolist()
    for found, expected in (
        (ranks.average_precision(scores, relevance), map(naive.average_precision, ordered, counts)),
        (ranks.ndcg(scores, relevance, 3), (naive.ndcg(row, n, 3) for row, n in zip(ordered, counts, strict=True))),
        (ranks.reciprocal_rank(scores, relevance), map(naive.reciprocal_rank, ordered)),
        (ranks.precision_at_hits(scores, relevance, 3), (naive.average_precision_of_hits(row, 3) for row in ordered)),
    ):
        np.testing.assert_allclose(found, list(expected))


def test_a_constant_score_is_the_worst_not_a_lucky_one():
    table = np.array([[True, False, False, False]])
    assert ranks.average_precision(np.zeros((1, 4)), relevance_of(table))[0] == pytest.approx(0.25)


def test_the_mean_skips_queries_without_relevant_ones():
    table = np.array([[True, False], [False, False]])
    assert ranks.mean_average_precision(np.array([[1.0, 0.0], [1.0, 0.0]]), relevance_of(table)) == 1.0
    assert ranks.mean_average_precision(np.zeros((1, 2)), relevance_of(table[1:])) == 0.0
