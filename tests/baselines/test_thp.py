"""THP: time encoding, agreement with EasyTPP in intensity and likelihood."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch

from neuroseqret.baselines.attentive import WIDTH
from neuroseqret.baselines.intensity import Events
from neuroseqret.baselines.thp import THPNetwork


def two_events(number: int = 6, marks: int = 3) -> Events:
    """Pairs of events, the first at time 0."""
    torch.manual_seed(2)
    gaps = torch.stack([torch.zeros(number), torch.rand(number) * 3], 1)
    drawn = torch.randint(0, marks, (number, 2))
    return Events(gaps.cumsum(1), gaps, gaps, drawn, torch.ones(number, 2, dtype=torch.bool))


def test_time_enters_as_waves_of_the_event_time() -> None:
    torch.manual_seed(0)
    network = THPNetwork(2).eval()
    seen = []
    network.attention.forward = lambda inputs: seen.append(inputs) or inputs  # type: ignore[method-assign]
    events = two_events(4, 2)
    with torch.no_grad():
        network.states(events)
    embedded = network.mark.weight.detach()
    time, mark = float(events.times[1, 1]), int(events.marks[1, 1])
    for place in (0, 1, 20, 63):
        angle = time / 10000 ** (2 * place / WIDTH)
        assert float(seen[0][1, 1, place] - embedded[mark, place]) == pytest.approx(math.sin(angle), abs=1e-5)
        other = place + WIDTH // 2
        assert float(seen[0][1, 1, other] - embedded[mark, other]) == pytest.approx(math.cos(angle), abs=1e-5)


def test_agrees_with_easytpp_on_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an event at time 0 both intensities are the same; EasyTPP takes no account of t_i elsewhere."""
    from easy_tpp.model import baselayer as layers
    from easy_tpp.model import thp

    monkeypatch.setattr("neuroseqret.baselines.intensity.SAMPLES", 4000)
    torch.manual_seed(0)
    network = THPNetwork(3).eval()
    torch.nn.init.normal_(network.base.weight, std=0.1)
    peer = thp.THP.__new__(thp.THP)
    torch.nn.Module.__init__(peer)
    peer.layer_intensity_hidden, peer.softplus = network.base, layers.ScaledSoftplus(3)
    peer.softplus.log_beta = network.log_softplus.log_beta
    peer.factor_intensity_decay = torch.nn.Parameter(network.drift.detach()[None])
    peer.factor_intensity_base = torch.nn.Parameter(torch.zeros(1, 3))
    peer.eps, peer.pad_token_id, peer.use_mc_samples, peer.loss_integral_num_sample_per_step = 0.0, 99, False, 4001
    peer.device = "cpu"
    events = two_events()
    with torch.no_grad():
        states = network.states(events)
        peer.forward = lambda *_: states[:, :-1]
        sampled = torch.rand(len(states), 1, 7)
        theirs = peer.softplus(peer.compute_states_at_sample_times(states[:, :1], sampled))
        ours = network.log_intensity(states[:, :1, None], sampled, torch.zeros_like(sampled)).exp()
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
        batch = SimpleNamespace(mask=events.mask, attention=torch.zeros(len(states), 2, 2, dtype=torch.bool))
        loss, number = peer.loglike_loss(
            time_seqs=events.times,
            time_delta_seqs=events.gaps,
            type_seqs=events.marks,
            seq_non_pad_mask=batch.mask,
            attention_mask=batch.attention,
        )
        assert number == len(states)
        assert -float(loss) == pytest.approx(float(network.log_likelihood(events, states).sum()), rel=1e-4)
