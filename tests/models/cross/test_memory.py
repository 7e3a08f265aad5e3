"""The memory of relevant sets: sets from groups and qrels, weights, agreement."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies  # noqa: F401  (its profile has no deadline)
from naive.cross import mark_divergence
from naive.cross_data import small_set
from neuroseqret.data.relevance import Relevance
from neuroseqret.models.cross.memory import FLOOR, agreement, fit_weights, negative_divergence, relevant_sets, softmax


def test_sets_are_groups_or_the_different_answers_of_qrels() -> None:
    queries, corpus = small_set()
    relevance = Relevance.from_groups(queries, corpus)
    sets, of_query = relevant_sets(relevance, np.arange(10))
    assert len(sets) == 5
    for row, number in enumerate(of_query):
        np.testing.assert_array_equal(sets[number], relevance.of(row))
    ids = corpus.ids.to_pylist()
    qrels = {"q0": {ids[0]: 1, ids[3]: 1}, "q1": {ids[3]: 1, ids[0]: 2}, "q2": {ids[5]: 1}}
    sets, of_query = relevant_sets(Relevance.from_qrels(queries, corpus, qrels), np.arange(4))
    assert [s.tolist() for s in sets] == [[0, 3], [5]]
    assert of_query.tolist() == [0, 0, 1, -1]


def test_weights_find_the_evidence_that_tells() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 6, 400)
    evidence = rng.normal(size=(3, 400, 6)).astype(np.float32)
    evidence[1, np.arange(400), truth] += 1.5  # only the second kind knows
    weights = fit_weights(evidence / 10, truth)
    assert weights[1] > 0.5
    assert max(weights[0], weights[2]) < 0.2 * weights[1]
    assert (weights >= 0).all()


@given(st.integers(0, 9999))
def test_divergence_is_that_of_set_and_next_event(seed: int) -> None:
    """Chain rule: the joint divergence of (set, event), summed over sets and events, is that of the attentions."""
    rng = np.random.default_rng(seed)
    a_q, a_c = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    of_set = rng.dirichlet(np.ones(3), 4)  # p(e | S)
    spread = (1 - FLOOR) * a_q + FLOOR / 4
    joint_c, joint_q = (a_c[:, None] * of_set).ravel(), (spread[:, None] * of_set).ravel()
    found = negative_divergence(a_q[None].astype(np.float32), a_c[None].astype(np.float32))
    assert found[0, 0] == pytest.approx(-mark_divergence(joint_c, joint_q), abs=1e-4)


def test_agreement_of_attentions() -> None:
    a, b = softmax(np.random.default_rng(0).normal(size=(2, 5, 7)).astype(np.float32))
    found = agreement(a, b)
    for q in range(5):
        for c in range(5):
            assert found[q, c] == pytest.approx(sum(x * y for x, y in zip(a[q], b[c], strict=True)), abs=1e-6)
