"""Likelihood and intensity of RMTPP, SAHP and THP against loops and quadrature; causality; padding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from naive import baselines as naive
from naive.random_sequences import random_sequences
from neuroseqret.baselines.intensity import Events, IntensityProcess, LogSoftplus
from neuroseqret.baselines.rmtpp import RMTPPNetwork
from neuroseqret.baselines.sahp import SAHPNetwork
from neuroseqret.baselines.thp import THPNetwork
from neuroseqret.data.batching import pad
from neuroseqret.processes.time_scale import TimeScale

MARKS = 3
NETWORKS = {RMTPPNetwork: naive.rmtpp_rates, SAHPNetwork: naive.sahp_rates, THPNetwork: naive.thp_rates}


@pytest.fixture(params=NETWORKS, ids=lambda network: network.__name__)
def network(request: pytest.FixtureRequest) -> IntensityProcess:
    torch.manual_seed(0)
    made = request.param(MARKS).double().eval()
    with torch.no_grad():  # fresh heads are all but constant; shake them
        for name, parameter in made.named_parameters():
            if not name.startswith(("attention", "recurrent", "mark.")):
                parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def some_events(seed: int = 0, number: int = 6) -> Events:
    sequences = random_sequences(seed, number, MARKS)
    events = Events.of(pad(sequences), 1.3, TimeScale.fit(sequences), MARKS)
    return replace(events, **{name: getattr(events, name).double() for name in ("times", "gaps", "log_gaps")})


def test_events_are_in_mean_gaps() -> None:
    sequences = random_sequences(1, 5, MARKS)
    events = Events.of(pad(sequences), 2.0, TimeScale.fit(sequences), 2)
    times = pad(sequences).times
    torch.testing.assert_close(events.times, (times / 2).float())
    inside = events.mask[:, 1:]
    torch.testing.assert_close(events.gaps[:, 1:][inside], ((times[:, 1:] - times[:, :-1]) / 2).float()[inside])
    assert events.marks.max() <= 2, "marks beyond the known ones share one number"


def test_log_intensity_equals_loops(network: IntensityProcess) -> None:
    weights = {k: v.numpy() for k, v in network.state_dict().items()}
    rates = NETWORKS[type(network)]
    rng = np.random.default_rng(0)
    states = torch.from_numpy(rng.standard_normal((20, network.width)))
    elapsed, times = (torch.from_numpy(rng.exponential(3, 20)) for _ in range(2))
    found = network.log_intensity(states, elapsed, times).detach().exp()
    for row in range(20):
        expected = rates(weights, states[row].numpy(), float(elapsed[row]), float(times[row]))
        np.testing.assert_allclose(found[row], expected, rtol=1e-6)


def test_log_likelihood_equals_loops_and_quadrature(network: IntensityProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuroseqret.baselines.intensity.SAMPLES", 2000)  # the midpoint rule, made fine
    weights = {k: v.numpy() for k, v in network.state_dict().items()}
    rates = NETWORKS[type(network)]
    events = some_events()
    with torch.no_grad():
        states = network.states(events)
        found = network.log_likelihood(events)
    for row, number in enumerate(events.mask.sum(1).tolist()):
        times, marks = events.times[row, :number].tolist(), events.marks[row, :number].tolist()
        expected = naive.log_likelihood(
            lambda state, elapsed, time: rates(weights, state, elapsed, time), states[row].numpy(), times, marks
        )
        assert float(found[row]) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_few_samples_are_near_the_integral_and_right_on_average(network: IntensityProcess) -> None:
    states = torch.randn(1, network.width, dtype=torch.float64)
    elapsed, times = torch.tensor([2.5]).double(), torch.tensor([0.7]).double()
    weights, rates = {k: v.numpy() for k, v in network.state_dict().items()}, NETWORKS[type(network)]
    exact = naive.integral(lambda tau: sum(rates(weights, states[0].numpy(), tau, 0.7)), 2.5)
    with torch.no_grad():
        assert float(network.compensator(states, elapsed, times)) == pytest.approx(exact, rel=2e-3)
        network.train()
        many = network.compensator(states.expand(4000, -1), elapsed.expand(4000), times.expand(4000))
    assert float(many.mean()) == pytest.approx(exact, rel=1e-3)


def test_states_see_no_future(network: IntensityProcess) -> None:
    events = some_events(3)
    changed = replace(
        events,
        marks=torch.where(torch.arange(events.marks.shape[1]) < 4, events.marks, (events.marks + 1) % MARKS),
        times=torch.where(torch.arange(events.marks.shape[1]) < 4, events.times, events.times + 7),
        gaps=torch.where(torch.arange(events.marks.shape[1]) < 4, events.gaps, events.gaps + 1),
        log_gaps=torch.where(torch.arange(events.marks.shape[1]) < 4, events.log_gaps, events.log_gaps + 1),
    )
    with torch.no_grad():
        before, after = network.states(events), network.states(changed)
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert (before[:, 4:] != after[:, 4:]).any()


def test_padding_changes_nothing(network: IntensityProcess) -> None:
    sequences = random_sequences(4, 6, MARKS)
    scale = TimeScale.fit(sequences)
    network.float()
    together = Events.of(pad(sequences), 1.0, scale, MARKS)
    with torch.no_grad():
        vectors = network.pooled(together, network.states(together))
        likelihood = network.log_likelihood(together)
        for row in range(len(sequences)):
            alone = Events.of(pad(sequences, np.array([row])), 1.0, scale, MARKS)
            torch.testing.assert_close(network.pooled(alone, network.states(alone))[0], vectors[row])
            torch.testing.assert_close(network.log_likelihood(alone)[0], likelihood[row], rtol=1e-4, atol=1e-4)


def test_a_single_event_has_likelihood_one_and_a_vector(network: IntensityProcess) -> None:
    events = some_events()
    one = replace(events, **{k: getattr(events, k)[:, :1] for k in ("times", "gaps", "log_gaps", "marks", "mask")})
    with torch.no_grad():
        assert (network.log_likelihood(one) == 0).all()
        torch.testing.assert_close(network.pooled(one, network.states(one)).norm(dim=1), torch.ones(6).double())


def test_extreme_gaps_keep_loss_and_gradient_finite(network: IntensityProcess) -> None:
    network.float().train()
    gaps = torch.tensor([[0.0, 0.0, 1e6, 1e-6, 1e3, 0.0]])
    events = Events(gaps.cumsum(1), gaps, (gaps + 1e-3).log(), torch.tensor([[0, 1, 3, 3, 1, 2]]), gaps >= 0)
    loss = -network.log_likelihood(events).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_log_softplus_far_out() -> None:
    layer = LogSoftplus(2).double()
    x = torch.tensor([-1e4, -30.0, -1.0, 0.0, 2.0, 1e4], dtype=torch.float64)[:, None].repeat(1, 2).requires_grad_()
    value = layer(x)
    value.sum().backward()
    assert torch.isfinite(value).all()
    assert torch.isfinite(x.grad).all()
    beta = float(layer.log_beta[0].detach().exp())
    for row in (1, 2, 3, 4):
        assert value[row, 0].item() == pytest.approx(np.log(naive.softplus(x[row, 0].item(), beta)), rel=1e-9)
    assert value[3].exp().sum().item() == pytest.approx(1.0), "it begins at one event in a mean gap"
