from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import training as naive
from neuroseqret.training.losses import in_batch_softmax, number_of_pairs, pairwise_hinge


def random_block(seed: int, queries: int, candidates: int):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(queries, candidates, generator=generator, dtype=torch.float64) * 2 - 1
    positive = torch.rand(queries, candidates, generator=generator) < 0.3
    return scores, positive, torch.rand(queries, candidates, generator=generator) < 0.1


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 7))
def test_softmax_is_the_naive_one(seed, queries, candidates):
    scores, positive, ignore = random_block(seed, queries, candidates)
    ignore &= ~ignore.all(1, keepdim=True)
    expected = naive.in_batch_softmax(scores.tolist(), positive.tolist(), 0.2, ignore.tolist())
    assert float(in_batch_softmax(scores, positive, 0.2, ignore)) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 7))
def test_hinge_is_the_naive_one(seed, queries, candidates):
    scores, positive, _ = random_block(seed, queries, candidates)
    for over in ("active", "all"):
        expected = naive.pairwise_hinge(scores.tolist(), positive.tolist(), 0.5, over)
        assert float(pairwise_hinge(scores, positive, 0.5, over=over)) == pytest.approx(expected)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 7))
def test_the_mean_over_all_pairs_is_the_sum_over_their_number(seed, queries, candidates):
    scores, positive, ignore = random_block(seed, queries, candidates)
    rows = range(queries), range(candidates), range(candidates)
    pairs = [
        (q, p, n)
        for q in rows[0]
        for p in rows[1]
        for n in rows[2]
        if positive[q, p] and not positive[q, n] and not ignore[q, p] and not ignore[q, n]
    ]
    assert number_of_pairs(positive, ignore) == len(pairs)
    total = sum(max(0.0, float(scores[q, n] - scores[q, p]) + 0.5) for q, p, n in pairs)
    mean = pairwise_hinge(scores, positive, 0.5, ignore, "all")
    assert float(mean) * max(len(pairs), 1) == pytest.approx(total)


@pytest.mark.parametrize("loss", [in_batch_softmax, pairwise_hinge])
def test_nothing_to_learn_from_costs_nothing(loss):
    scores = torch.rand(3, 4, requires_grad=True)
    value = loss(scores, torch.zeros(3, 4, dtype=torch.bool))
    value.backward()
    assert value.item() == 0
    assert torch.isfinite(scores.grad).all()


@pytest.mark.parametrize("loss", [in_batch_softmax, pairwise_hinge])
def test_an_ignored_pair_gets_no_gradient(loss):
    scores = torch.linspace(0.4, 0.6, 12).reshape(3, 4).requires_grad_()  # all within the margin of 0.5
    positive = torch.tensor([[True, False, False, True]] * 3)
    ignore = torch.zeros(3, 4, dtype=torch.bool)
    ignore[1, 0] = ignore[2, 1] = True
    loss(scores, positive, 0.5, ignore).backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[1, 0] == scores.grad[2, 1] == 0
    assert scores.grad[0, 0] != 0
