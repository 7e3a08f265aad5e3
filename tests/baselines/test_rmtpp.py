"""RMTPP: recurrence, closed-form integral, truncated gradients, agreement with EasyTPP."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from naive import baselines as naive
from neuroseqret.baselines.intensity import Events
from neuroseqret.baselines.rmtpp import BPTT, GROWTH, HIGHEST, RMTPPNetwork


@pytest.fixture
def network() -> RMTPPNetwork:
    torch.manual_seed(0)
    return RMTPPNetwork(3).double().eval()


def events_of(length: int, marks: int = 3) -> Events:
    rng = np.random.default_rng(length)
    gaps = torch.from_numpy(rng.exponential(1, (2, length)))
    drawn = torch.from_numpy(rng.integers(0, marks, (2, length)))
    return Events(gaps.cumsum(1), gaps, gaps.log(), drawn, gaps > 0)


def test_states_equal_the_recurrence_across_cuts(network: RMTPPNetwork) -> None:
    events = events_of(2 * BPTT + 7)
    weights = {k: v.numpy() for k, v in network.state_dict().items()}
    states = network.states(events).detach().numpy()
    for row in range(2):
        expected = naive.rmtpp_states(weights, events.marks[row].tolist(), events.log_gaps[row].tolist())
        np.testing.assert_allclose(states[row], expected, atol=1e-12)


def test_gradients_stop_after_bptt_events(network: RMTPPNetwork) -> None:
    events = events_of(BPTT + 10)
    log_gaps = events.log_gaps.clone().requires_grad_()
    states = network.states(Events(events.times, events.gaps, log_gaps, events.marks, events.mask))
    states[:, -1].sum().backward()
    assert log_gaps.grad is not None
    assert (log_gaps.grad[:, :BPTT] == 0).all()
    assert (log_gaps.grad[:, BPTT:] != 0).all()


@pytest.mark.parametrize("slope", [-0.7, -1e-9, 0.0, 1e-9, 0.3, 4.0])
def test_closed_form_equals_quadrature(network: RMTPPNetwork, slope: float) -> None:
    torch.nn.init.constant_(network.slope, slope)
    weights = {k: v.numpy() for k, v in network.state_dict().items()}
    states = torch.randn(4, network.width, dtype=torch.float64)
    elapsed = torch.tensor([0.0, 0.5, 3.0, 9.0]).double()  # at slope 4 the last one runs into the bound
    found = network.compensator(states, elapsed, elapsed).detach()
    for row in range(4):
        end, state = float(elapsed[row]), states[row].numpy()
        level = float(weights["level.weight"][0] @ state + weights["level.bias"][0])
        bound = min(level + GROWTH, HIGHEST)
        bend = (bound - level) / slope if slope > 0 else end
        expected = naive.integral(lambda tau, s=state: sum(naive.rmtpp_rates(weights, s, tau, 0.0)), min(end, bend))
        expected += np.exp(bound) * max(end - bend, 0.0)
        assert float(found[row]) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_agrees_with_easytpp_on_the_same_weights(network: RMTPPNetwork) -> None:
    """With one mark both have the same intensity; EasyTPP integrates by samples."""
    from easy_tpp.model import rmtpp

    torch.manual_seed(1)
    network = RMTPPNetwork(1)
    peer = rmtpp.RMTPP.__new__(rmtpp.RMTPP)
    torch.nn.Module.__init__(peer)
    peer.hidden_to_intensity_logits = network.level
    peer.w_t, peer.b_t = torch.nn.Parameter(network.slope.detach()[None, None]), torch.nn.Parameter(torch.zeros(1, 1))
    states, elapsed = torch.randn(2, 5, network.width), torch.rand(2, 5) * 3
    places = torch.linspace(0, 1, 4001)
    with torch.no_grad():
        theirs = peer.evolve_and_get_intentsity(states, elapsed[..., None] * places)  # (B, N, G, 1)
        ours = network.log_intensity(states[:, :, None], elapsed[..., None] * places, elapsed[..., None])
        torch.testing.assert_close(ours.exp(), theirs, rtol=1e-5, atol=1e-6)
        integral = torch.trapezoid(theirs[..., 0], places, dim=-1) * elapsed
        torch.testing.assert_close(network.compensator(states, elapsed, elapsed), integral, rtol=1e-4, atol=1e-5)
