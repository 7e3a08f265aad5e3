from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import models as naive
from neuroseqret.processes.unwarp import Unwarp


def wild(seed: int, horizon: float = 10.0) -> Unwarp:
    """An unwarping far from the identity, zero in places."""
    torch.manual_seed(seed)
    unwarp = Unwarp(horizon)
    for layer in unwarp.net:
        if isinstance(layer, torch.nn.Linear):
            torch.nn.init.normal_(layer.weight, std=1.5 / layer.in_features**0.5)
            torch.nn.init.normal_(layer.bias, std=0.7)
    return unwarp


@pytest.mark.parametrize("seed", range(5))
def test_the_grid_integral_is_the_quadrature(seed):
    unwarp = wild(seed)
    times = torch.linspace(0, 10, 23, dtype=torch.float64)
    expected = torch.tensor([naive.unwarp(unwarp.rate, float(t), 10.0) for t in times])
    torch.testing.assert_close(unwarp(times).detach().double(), expected.double(), atol=3e-3, rtol=1e-3)
    assert float(unwarp.penalty().detach()) == pytest.approx(naive.unwarp_penalty(unwarp.rate, unwarp.sigma), rel=1e-2)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.lists(st.floats(0, 20), min_size=2, max_size=30))
def test_it_is_monotone_also_beyond_the_horizon(seed, times):
    ordered = torch.tensor(sorted(times), dtype=torch.float64)
    warped = wild(seed)(ordered).detach()
    assert (warped.diff() >= -1e-5).all()


def test_it_begins_near_the_identity():
    torch.manual_seed(0)
    times = torch.linspace(0, 10, 50, dtype=torch.float64)
    unwarp = Unwarp(10.0)
    torch.testing.assert_close(unwarp(times).detach(), times, atol=0.1, rtol=0.02)
    assert float(unwarp.penalty().detach()) < 0.1


def test_the_penalty_pulls_it_back_to_the_identity():
    unwarp = wild(1)
    before = float(unwarp.penalty().detach())
    optimizer = torch.optim.Adam(unwarp.parameters(), lr=0.01)
    for _ in range(100):
        optimizer.zero_grad()
        unwarp.penalty().backward()
        optimizer.step()
    assert float(unwarp.penalty().detach()) < 0.05 * before


def test_noise_is_one_shift_a_sequence():
    torch.manual_seed(0)
    noise = Unwarp(10.0, sigma=0.2).noise(5000)
    assert noise.shape == (5000, 1)
    assert noise.std().item() == pytest.approx(2.0, rel=0.05)


def test_short_gaps_late_in_a_long_window_survive():
    unwarp = Unwarp(2.5e6)
    torch.nn.init.zeros_(unwarp.net[-1].weight)  # u = 1 exactly
    times = 2.4e6 + 0.001 * torch.arange(5, dtype=torch.float64)
    torch.testing.assert_close(unwarp(times).detach().diff(), times.diff(), rtol=1e-5, atol=0)
