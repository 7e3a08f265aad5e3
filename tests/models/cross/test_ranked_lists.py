"""Ranked lists against loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies  # noqa: F401  (its profile has no deadline)
from naive.cross import average_precision, ndcg, reranked
from neuroseqret.data.relevance import Relevance
from neuroseqret.errors import UserError
from neuroseqret.models.cross.ranked_lists import (
    best_first,
    lift,
    list_average_precision,
    list_ndcg,
    list_reciprocal_rank,
    mixed,
    rank,
)


def random_relevance(rng: np.random.Generator, queries: int, corpus: int) -> Relevance:
    lists = [np.flatnonzero(rng.random(corpus) < 0.3) for _ in range(queries)]
    return Relevance(np.cumsum([0, *map(len, lists)]), np.concatenate(lists).astype(np.int64), corpus)


@given(st.integers(0, 9999), st.integers(1, 12))
def test_lists_hold_the_best_and_measure_like_the_loops(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, (3, 9)).astype(np.float32)  # many ties
    relevance = random_relevance(rng, 3, 9)
    lists = rank(scores, np.arange(3), relevance, depth)
    other = rng.normal(size=lists.candidates.shape).astype(np.float32)
    ap, gained = list_average_precision(other, lists), list_ndcg(other, lists, 4)
    reciprocal = list_reciprocal_rank(other, lists)
    for q in range(3):
        expected = sorted(range(9), key=lambda c: (-scores[q, c], c))[:depth]
        assert lists.candidates[q].tolist() == expected
        truth = [c in relevance.of(q) for c in expected]
        assert lists.relevant[q].tolist() == truth
        in_order = [truth[k] for k in np.argsort(-other[q], kind="stable")]
        assert ap[q] == pytest.approx(average_precision(in_order, len(relevance.of(q))))
        assert gained[q] == pytest.approx(ndcg(in_order, len(relevance.of(q)), 4))
        assert reciprocal[q] == pytest.approx(1 / (1 + in_order.index(True)) if any(in_order) else 0)


@given(st.integers(0, 9999), st.integers(1, 9))
def test_lifted_scores_sort_into_the_reranked_order(seed: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(2, 9)).astype(np.float32) * 1e6
    best = best_first(first, depth)
    second = rng.normal(size=best.shape).astype(np.float32)
    lifted = lift(first, best, second)
    for q in range(2):
        expected = reranked(first[q].tolist(), dict(zip(best[q].tolist(), second[q].tolist(), strict=True)))
        assert np.argsort(-lifted[q], kind="stable").tolist() == expected


def test_a_score_that_is_no_number_is_an_error() -> None:
    with pytest.raises(UserError, match="not finite"):
        lift(np.zeros((1, 2), np.float32), np.array([[0]]), np.array([[np.nan]], np.float32))


@given(st.integers(0, 9999), st.integers(1, 5), st.integers(5, 8))
def test_mixed_lists_hold_relevant_sequences_once_and_others_by_chance(seed: int, most: int, depth: int) -> None:
    rng = np.random.default_rng(seed)
    relevance = random_relevance(rng, 4, 30)
    lists = mixed(np.arange(4), relevance, most, depth, rng)
    assert lists.candidates.shape == (4, depth)
    for q in range(4):
        answers = set(relevance.of(q).tolist())
        assert lists.relevant[q].tolist() == [c in answers for c in lists.candidates[q].tolist()]
        found = lists.candidates[q][lists.relevant[q]].tolist()
        assert len(set(found)) == len(found) == lists.counts[q] == min(most, len(answers))


def test_mixed_lists_are_in_an_order_by_chance() -> None:
    relevance = random_relevance(np.random.default_rng(0), 500, 60)
    lists = mixed(np.arange(500), relevance, 5, 10, np.random.default_rng(1))
    share = lists.relevant.mean(0)
    assert share.min() > 0.4
    assert share.max() < 0.6
