"""Closed-form divergences against numerical integration and loops."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

import strategies  # noqa: F401  (its profile has no deadline)
from naive.cross import mark_divergence, normal_divergence, textbook_divergence
from neuroseqret.processes.divergence import all_pairs_divergence
from neuroseqret.processes.heads import NextEvent

numbers = st.floats(-3, 3)


def events(seed: int, *shape: int, marks: int = 4) -> NextEvent:
    made = torch.Generator().manual_seed(seed)
    mu, raw = torch.randn(*shape, generator=made).double(), torch.randn(*shape, generator=made).double()
    return NextEvent(mu, (0.4 * raw).exp(), torch.randn(*shape, marks, generator=made).double().log_softmax(-1))


def of_one_pair(first: NextEvent, second: NextEvent) -> float:
    one, two = (NextEvent(x.mu[..., None], x.sigma[..., None], x.log_marks[..., None, :]) for x in (first, second))
    seen = torch.ones(1, dtype=torch.bool)
    return float(all_pairs_divergence(one, seen, two, seen))


@given(numbers, st.floats(0.2, 3), numbers, st.floats(0.2, 3), st.integers(0, 999))
def test_divergence_is_the_integral(mu1: float, sigma1: float, mu2: float, sigma2: float, seed: int) -> None:
    log_p, log_q = torch.randn(2, 5, generator=torch.Generator().manual_seed(seed)).double().log_softmax(-1)
    one = NextEvent(torch.tensor(mu1).double(), torch.tensor(sigma1).double(), log_p)
    two = NextEvent(torch.tensor(mu2).double(), torch.tensor(sigma2).double(), log_q)
    expected = normal_divergence(mu1, sigma1, mu2, sigma2) + mark_divergence(log_p.exp().tolist(), log_q.exp().tolist())
    found = of_one_pair(one, two)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert found >= -1e-9
    assert abs(of_one_pair(one, one)) < 1e-9


@given(st.integers(0, 999))
def test_sum_over_all_pairs_is_that_of_the_loops(seed: int) -> None:
    first, second = events(seed, 2, 3, 4), events(seed + 1, 2, 5)
    rng = np.random.default_rng(seed)
    mask1, mask2 = torch.from_numpy(rng.random((2, 3, 4)) < 0.7), torch.from_numpy(rng.random((2, 5)) < 0.7)
    found = all_pairs_divergence(first, mask1, second, mask2)
    for q in range(2):
        for c in range(3):
            total = 0.0
            for j in range(4):
                for i in range(5):
                    if mask1[q, c, j] and mask2[q, i]:
                        one = (
                            float(first.mu[q, c, j]),
                            float(first.sigma[q, c, j]),
                            first.log_marks[q, c, j].exp().tolist(),
                        )
                        two = float(second.mu[q, i]), float(second.sigma[q, i]), second.log_marks[q, i].exp().tolist()
                        total += textbook_divergence(*one, *two)
            np.testing.assert_allclose(float(found[q, c]), total, rtol=1e-8, atol=1e-8)


def test_equal_distributions_far_from_zero_differ_by_nothing_in_single_precision() -> None:
    alike = NextEvent(torch.full((1, 1, 200), 300.0), torch.full((1, 1, 200), 0.4), torch.zeros(1, 1, 200, 1))
    query = NextEvent(*(x[:, 0] for x in vars(alike).values()))
    seen = torch.ones(1, 1, 200, dtype=torch.bool)
    assert abs(float(all_pairs_divergence(alike, seen, query, seen[:, 0]))) < 0.01
