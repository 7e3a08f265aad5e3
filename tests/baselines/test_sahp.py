"""SAHP: gaps shift positions, the intensity converges, agreement with EasyTPP."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from neuroseqret.baselines.intensity import Events
from neuroseqret.baselines.sahp import SAHPNetwork


@pytest.fixture
def network() -> SAHPNetwork:
    torch.manual_seed(0)
    made = SAHPNetwork(3).eval()
    for head in (made.level, made.start, made.decay):
        # Not larger: EasyTPP's softplus is cut off between 11.5 and 20.
        torch.nn.init.normal_(head.weight, std=0.1)
    return made


def some_events(number: int = 4, length: int = 6) -> Events:
    torch.manual_seed(1)
    gaps = torch.rand(number, length) * 2
    drawn = torch.randint(0, 3, (number, length))
    return Events(gaps.cumsum(1), gaps, gaps, drawn, torch.ones(number, length, dtype=torch.bool))


def test_states_depend_on_gaps_not_on_the_clock(network: SAHPNetwork) -> None:
    events = some_events()
    with torch.no_grad():
        states = network.states(events)
        torch.testing.assert_close(network.states(replace(events, times=events.times + 5)), states)
        assert (network.states(replace(events, gaps=events.gaps * 2)) - states).abs().max() > 1e-2


def test_intensity_runs_from_start_to_level(network: SAHPNetwork) -> None:
    states = torch.randn(5, network.width)
    with torch.no_grad():
        begin, end = (network.log_intensity(states, torch.full((5,), t), torch.zeros(5)) for t in (0.0, 1e6))
        torch.testing.assert_close(begin, network.log_softplus(torch.nn.functional.gelu(network.start(states))))
        torch.testing.assert_close(end, network.log_softplus(torch.nn.functional.gelu(network.level(states))))


def test_agrees_with_easytpp_on_the_same_weights(network: SAHPNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    from easy_tpp.model import baselayer as layers
    from easy_tpp.model import sahp

    monkeypatch.setattr("neuroseqret.baselines.intensity.SAMPLES", 4000)
    peer = sahp.SAHP.__new__(sahp.SAHP)
    torch.nn.Module.__init__(peer)
    peer.mu = torch.nn.Sequential(network.level, torch.nn.GELU())
    peer.eta = torch.nn.Sequential(network.start, torch.nn.GELU())
    peer.gamma = torch.nn.Sequential(network.decay, torch.nn.Softplus())
    peer.softplus = layers.ScaledSoftplus(3)
    peer.softplus.log_beta = network.log_softplus.log_beta
    peer.eps, peer.pad_token_id, peer.use_mc_samples, peer.loss_integral_num_sample_per_step = 0.0, 99, False, 4001
    peer.device = "cpu"
    events = some_events()
    with torch.no_grad():
        states = network.states(events)
        peer.forward = lambda *_: states[:, :-1]
        sampled = torch.rand(*states.shape[:2], 7) * 3
        theirs = peer.softplus(peer.compute_states_at_sample_times(states, sampled))
        ours = network.log_intensity(states[:, :, None], sampled, torch.zeros_like(sampled)).exp()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
        loss, number = peer.loglike_loss(
            time_seqs=events.times,
            time_delta_seqs=events.gaps,
            type_seqs=events.marks,
            seq_non_pad_mask=events.mask,
            attention_mask=torch.zeros(len(states), 6, 6, dtype=torch.bool),
        )
        assert number == events.predicted.sum()
        assert -float(loss) == pytest.approx(float(network.log_likelihood(events, states).sum()), rel=1e-4)
