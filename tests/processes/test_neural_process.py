"""Encoder, heads and Fisher vectors against their references."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret.data.batching import pad
from neuroseqret.models.presets import settings_of
from neuroseqret.models.self_attention.network import RelevanceNetwork, split_blocks, take
from neuroseqret.processes import fisher
from neuroseqret.processes.encoder import EventEncoder
from neuroseqret.processes.heads import NextEventHeads
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.neural_process import NeuralProcess
from neuroseqret.processes.time_scale import Inputs, TimeScale


def process(seed: int = 0, **overrides):
    torch.manual_seed(seed)
    made = NeuralProcess(MarkClasses(3), width=8, heads=2, **overrides).eval()
    for parameter in made.heads.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return made


def hawkes(seed: int = 0):
    return process(seed, reads="times")


def inputs_of(seed: int, **kwargs) -> Inputs:
    sequences = random_sequences(seed, **kwargs)
    return TimeScale.fit(sequences).inputs(pad(sequences))


@pytest.mark.parametrize("seed", range(3))
def test_states_are_those_of_explicit_attention(seed):
    model, inputs = process(seed), inputs_of(seed)
    states = model.encoder(inputs)
    for row in range(len(inputs)):
        expected = naive.attention_states(model.encoder, take(inputs, torch.tensor([row])))
        torch.testing.assert_close(states[row, : len(expected)], expected, atol=1e-5, rtol=1e-4)


def test_the_encoder_is_causal():
    model, inputs = process(), inputs_of(4, number=3, longest=10)
    before = model.encoder(inputs)
    inputs.values[:, 4:] += 1.0
    after = model.encoder(inputs)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5], after[:, 5])


@pytest.mark.parametrize("seed", range(3))
def test_hawkes_states_are_those_of_explicit_waves_and_attention(seed):
    model, inputs = hawkes(seed), inputs_of(seed)
    states = model.encoder(inputs)
    for row in range(len(inputs)):
        expected = naive.hawkes_states(model.encoder, take(inputs, torch.tensor([row])))
        torch.testing.assert_close(states[row, : len(expected)], expected, atol=1e-4, rtol=1e-3)


def test_hawkes_states_see_times_and_marks_up_to_their_event_and_nothing_else():
    model, inputs = hawkes(), inputs_of(4, number=3, longest=10)
    before = model.encoder(inputs)
    inputs.values.add_(1.0)
    torch.testing.assert_close(model.encoder(inputs), before)
    inputs.times[:, 4:] += 1.0
    after = model.encoder(inputs)
    torch.testing.assert_close(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5], after[:, 5])


@pytest.mark.parametrize("survival", [True, False])
def test_the_likelihood_is_the_naive_one(survival):
    model, inputs = process(), inputs_of(5)
    states = model.encoder(inputs)
    found = model.heads.log_likelihood(inputs, states, survival)
    for row in range(len(inputs)):
        n = int(inputs.lengths[row])
        tail = inputs.tail[row] if survival and inputs.open_end[row] else None
        expected = naive.log_likelihood(
            model.heads, states[row], inputs.gaps[row, :n], inputs.timed[row, :n], inputs.marks[row, :n], tail
        )
        torch.testing.assert_close(found[row], expected, atol=1e-4, rtol=1e-4)


def test_the_density_per_unit_of_time_integrates_to_one():
    model, scale = process(), TimeScale(eps=0.1, mean=0.3, sd=0.8)
    torch.nn.init.zeros_(model.heads.gap.weight)
    model.heads.gap.bias.data = torch.tensor([0.2, -0.5])
    gaps = torch.linspace(1e-4, 400, 400_000, dtype=torch.float64)
    sequences = random_sequences(0, number=1, longest=1)
    inputs = scale.inputs(pad(sequences))
    inputs = take(inputs, torch.zeros(len(gaps), dtype=torch.long))
    z = scale.standardise(gaps)[:, None]
    inputs = Inputs(
        inputs.values, inputs.marks, inputs.mask, torch.ones_like(inputs.mask), z, inputs.tail, inputs.open_end,
        inputs.times,
    )  # fmt: skip
    after = model.heads(model.encoder(take(inputs, torch.tensor([0]))))
    log_gap = -0.5 * ((z[:, 0] - after.mu[0, 0]) / after.sigma[0, 0]) ** 2 - after.sigma[0, 0].log() - 0.9189385
    # The head models zg; a density of the raw gap has the further factor 1 / (sd (gap + eps)).
    raw = (inputs.gaps * scale.sd + scale.mean + math.log(scale.sd))[:, 0]
    density = (log_gap - raw).exp().double()
    below = torch.distributions.Normal(after.mu[0, 0], after.sigma[0, 0]).cdf(scale.standardise(torch.tensor(0.0)))
    assert torch.trapezoid(density, gaps).item() == pytest.approx(1 - below.item(), abs=0.01)


@pytest.mark.parametrize("make", [process, hawkes])
@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_is_the_gradient(seed, make):
    model, inputs = make(seed).double(), inputs_of(seed)
    inputs = Inputs(*(x.double() if x.dtype == torch.float32 else x for x in vars(inputs).values()))
    inputs.marks[0, 0] = 7  # a mark that training never saw
    with torch.no_grad():
        found = fisher.score(model.heads, inputs, model.encoder(inputs), clip=None)
    reference = fisher.full_score(model, inputs)
    names = [k for k, v in model.named_parameters() for _ in range(v.numel())]
    where = {k: [i for i, n in enumerate(names) if n == k] for k in dict(model.named_parameters())}
    gap_weight, gap_bias = reference[:, where["heads.gap.weight"]], reference[:, where["heads.gap.bias"]]
    mark_weight, mark_bias = reference[:, where["heads.mark.weight"]], reference[:, where["heads.mark.bias"]]
    rows = torch.cat([gap_weight.view(-1, 2, 8), mark_weight.view(-1, 3, 8)], dim=1)
    expected = torch.cat([rows, torch.cat([gap_bias, mark_bias], 1)[:, :, None]], dim=2).flatten(1)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("survival", [True, False])
def test_fisher_vectors_are_the_naive_ones(survival):
    model, inputs = process().double(), inputs_of(10)
    inputs = Inputs(*(x.double() if x.dtype == torch.float32 else x for x in vars(inputs).values()))
    inputs.marks[1, 0] = 7  # a mark that training never saw
    with torch.no_grad():
        states = model.encoder(inputs)
        found = fisher.score(model.heads, inputs, states, survival)
        slow = []
        for row in range(len(inputs)):
            n = int(inputs.lengths[row])
            tail = inputs.tail[row] if survival and inputs.open_end[row] else None
            events = inputs.gaps[row, :n], inputs.timed[row, :n], inputs.marks[row, :n].tolist()
            slow.append(naive.fisher_score(model.heads, states[row], *events, tail))
    np.testing.assert_allclose(found.numpy(), slow, rtol=1e-6, atol=1e-9)
    information = fisher.DiagonalInformation(found.shape[1]).double()
    information.update(found)
    # The fast one adds a millionth of the mean moment to each, hence the tolerance.
    np.testing.assert_allclose(information.whiten(found).numpy(), naive.fisher_vectors(slow), atol=1e-3)


def test_the_gradient_by_all_parameters_is_that_of_one_sequence_after_another():
    settings = settings_of("neural", {"encoder": {"width": 8, "max_length": 8}, "vector": {"fisher": "all"}})
    torch.manual_seed(0)
    network, inputs = RelevanceNetwork(MarkClasses(3), {}, settings).train(), inputs_of(3, number=4, longest=20)
    found = network.raw(inputs).score
    assert network.training
    assert found.shape == (4, network.fisher_size)
    blocks, owner = split_blocks(inputs, 8)
    network.process.eval()
    parameters = list(network.process.parameters())
    for row in range(4):
        log_p = network.process(take(blocks, (owner == row).nonzero()[:, 0])).sum()
        expected = torch.cat([g.flatten() for g in torch.autograd.grad(log_p, parameters)])
        torch.testing.assert_close(found[row], expected, atol=1e-4, rtol=1e-4)
    found.square().sum().backward()  # training goes through it
    assert all(p.grad is not None for p in parameters)


def test_contributions_of_the_events_sum_to_the_score():
    model, inputs = process(), inputs_of(6)
    states = model.encoder(inputs)
    whole = fisher.score(model.heads, inputs, states)
    parts = fisher.contributions(model.heads, inputs, states)
    torch.testing.assert_close(parts.sum(1), whole, atol=1e-4, rtol=1e-4)
    for row in range(len(inputs)):
        assert not parts[row, int(inputs.lengths[row]) + 1 :].any()


def test_whitening_is_by_the_root_of_the_second_moment_and_to_unit_length():
    information = fisher.DiagonalInformation(3)
    scores = torch.tensor([[3.0, 1.0, 0.0], [-3.0, 1.0, 0.0]])
    information.update(scores)
    torch.testing.assert_close(information.moment, torch.tensor([9.0, 1.0, 0.0]))
    torch.testing.assert_close(
        information.whiten(scores)[0], torch.tensor([0.5**0.5, 0.5**0.5, 0.0]), atol=1e-5, rtol=0
    )
    information.update(scores * 0)
    torch.testing.assert_close(information.moment, 0.95 * torch.tensor([9.0, 1.0, 0.0]))


def test_blocks_hold_every_event_once_and_the_end_only_in_the_last():
    inputs = inputs_of(7, number=5, longest=30)
    blocks, owner = split_blocks(inputs, 8)
    for row in range(5):
        mine = take(blocks, (owner == row).nonzero()[:, 0])
        n = int(inputs.lengths[row])
        assert len(mine) == -(-n // 8)
        torch.testing.assert_close(mine.gaps[mine.mask], inputs.gaps[row, :n])
        assert int(mine.lengths.max() - mine.lengths.min()) <= len(mine)  # of about equal size
        assert not mine.open_end[:-1].any()
        assert mine.open_end[-1] == inputs.open_end[row]


def test_long_sequences_sum_over_blocks():
    settings = settings_of("neural", {"encoder": {"width": 8, "max_length": 8}})
    torch.manual_seed(0)
    network = RelevanceNetwork(MarkClasses(3), {}, settings).eval()
    inputs = inputs_of(8, number=4, longest=40)
    raw = network.raw(inputs)
    blocks, owner = split_blocks(inputs, 8)
    for row in range(4):
        states = [network.process.encoder(take(blocks, torch.tensor([b]))) for b in (owner == row).nonzero()[:, 0]]
        parts = [take(blocks, torch.tensor([b])) for b in (owner == row).nonzero()[:, 0]]
        score = sum(fisher.score(network.process.heads, p, s)[0] for p, s in zip(parts, states, strict=True))
        torch.testing.assert_close(raw.score[row], score, atol=1e-4, rtol=1e-4)
        events = torch.cat([s[0, 1:][p.mask[0]] for p, s in zip(parts, states, strict=True)])
        expected = torch.cat([events.mean(0), events.var(0, unbiased=False).clamp(min=1e-6).sqrt(), events.amax(0)])
        torch.testing.assert_close(raw.pooled[row], expected, atol=2e-3, rtol=1e-3)


def test_unknown_marks_share_an_embedding():
    encoder, inputs = EventEncoder(3, 8).eval(), inputs_of(9, number=2)
    inputs.marks[:] = 3
    one = encoder(inputs)
    inputs.marks[:] = 500
    torch.testing.assert_close(encoder(inputs), one)
    heads = NextEventHeads(3, 8)
    assert np.isfinite(heads.log_likelihood(inputs, one).detach().numpy()).all()
