"""The cross-attention process against loops; padding and future events are never seen."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from naive.cross import cross_attention, event_embeddings, prefix_states
from neuroseqret.processes.cross_process import CrossProcess


@pytest.fixture
def process() -> CrossProcess:
    return of_blocks(1)


def of_blocks(blocks: int, dropout: float = 0.0) -> CrossProcess:
    torch.manual_seed(0)
    made = CrossProcess(marks=3, width=6, positions=8, blocks=blocks, dropout=dropout).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(std=0.5)  # larger weights make softmax pick one event
    return made


def weights(process: CrossProcess) -> list[np.ndarray]:
    return [p.weight.detach().numpy() for layer in process.layers for p in (layer.query, layer.key, layer.value)]


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_attention_and_states_are_those_of_the_loops(blocks: int) -> None:
    process = of_blocks(blocks)
    query, corpus = torch.randn(2, 5, 6).double(), torch.randn(2, 3, 4, 6).double()
    mask = torch.ones(2, 5, dtype=torch.bool)
    attended = process.attend(corpus, query, mask)
    states = process.states(attended)
    w = weights(process)
    parts = [p.detach().numpy() for p in (process.out, process.feed, process.feed_bias, process.out_bias)]
    for q in range(2):
        for c in range(3):
            expected = cross_attention(corpus[q, c].numpy(), query[q].numpy(), *w)
            np.testing.assert_allclose(attended[q, c].detach().numpy(), expected, rtol=1e-9)
            np.testing.assert_allclose(states[q, c].detach().numpy(), prefix_states(expected, *parts), rtol=1e-9)
        own = process.attend_self(query)[q].detach().numpy()
        np.testing.assert_allclose(own, cross_attention(query[q].numpy(), query[q].numpy(), *w, causal=True), rtol=1e-9)


def test_embeddings_of_events_are_those_of_the_loops(process: CrossProcess) -> None:
    times = torch.rand(2, 10).double().cumsum(1)  # more events than positions
    marks = torch.randint(0, 5, (2, 10))  # some unknown
    found = process.embed_events(times, marks).detach().numpy()
    scaled = process.embed_events(times, marks, unit=7.0).detach().numpy()
    for row in range(2):
        events = times[row].tolist(), marks[row].tolist()
        np.testing.assert_allclose(found[row], event_embeddings(process, *events))
        np.testing.assert_allclose(scaled[row], event_embeddings(process, *events, unit=7.0))


def test_dropout_follows_every_block_in_training_only() -> None:
    process, query = of_blocks(2, dropout=0.5), torch.randn(1, 40, 6).double()
    process.eval()
    kept = process.attend_self(query)
    torch.testing.assert_close(process.attend_self(query), kept)
    process.train()
    assert 0.3 < float((process.attend_self(query) == 0).double().mean()) < 0.7


@pytest.mark.parametrize("blocks", [1, 2])
def test_padded_query_events_are_not_attended_to(blocks: int) -> None:
    process = of_blocks(blocks)
    query, corpus = torch.randn(1, 5, 6).double(), torch.randn(1, 2, 4, 6).double()
    mask = torch.tensor([[True, True, True, False, False]])
    short = process.attend(corpus, query[:, :3], mask[:, :3])
    torch.testing.assert_close(process.attend(corpus, query, mask), short)


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_sequence_conditioned_on_itself_does_not_see_its_future(blocks: int) -> None:
    process = of_blocks(blocks)
    times = torch.tensor([[0.5, 1.0, 2.0, 4.0]]).double()
    marks = torch.tensor([[0, 1, 2, 0]])
    changed_times, changed_marks = times.clone(), marks.clone()
    changed_times[0, 3], changed_marks[0, 3] = 9.0, 1
    one = process.states(process.attend_self(process.embed_events(times, marks)))
    two = process.states(process.attend_self(process.embed_events(changed_times, changed_marks)))
    torch.testing.assert_close(one[:, :4], two[:, :4])  # the states that predict events 1 to 4
    assert not torch.allclose(one[:, 4], two[:, 4])


def test_marks_and_positions_beyond_the_known_are_finite(process: CrossProcess) -> None:
    times = torch.linspace(0, 1e12, 20, dtype=torch.float64)[None]
    states = process.states(process.attend_self(process.embed_events(times, torch.full((1, 20), 99))))
    assert torch.isfinite(states).all()


def test_gradients_are_right_for_times_of_many_typical_gaps() -> None:
    torch.manual_seed(0)
    process = CrossProcess(marks=3, width=32, positions=64)
    times = torch.rand(4, 40).double().cumsum(1) * 1e4
    marks = torch.randint(0, 3, (4, 40))
    found = []
    for exact in (False, True):
        made = copy.deepcopy(process).double() if exact else process
        events = made.embed_events(times, marks)
        both = made.attend_self(events), made.attend(events[:, None], events, torch.ones(4, 40, dtype=torch.bool))
        sum(attended.sum() for attended in both).backward()
        found.append(torch.cat([p.grad.flatten().double() for p in made.parameters() if p.grad is not None]))
    assert (found[0] - found[1]).norm() < 1e-2 * found[1].norm()
