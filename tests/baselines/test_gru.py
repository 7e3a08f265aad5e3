"""The recurrent baseline: learns, ignores padding, is repeatable, is the same after saving."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuroseqret.baselines.gru import GRU, GRUEncoder, GRUSettings
from neuroseqret.data.batching import pad
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.processes.time_scale import TimeScale
from simulated import simulate

SMALL = {"hidden": 16, "dimension": 8, "batch": 16}
QUICK = {**SMALL, "loop": {"steps": 6, "learning_rate": 1e-2, "evaluations": 2}}


def test_learns():
    task = make_task(*simulate(queries_per_group=10, events=15))
    model = GRU(**SMALL, loop={"steps": 50, "learning_rate": 1e-2}).fit(
        task.training_queries, task.training_corpus, task.training_relevance
    )
    assert answer(model, task).measures["AP"].mean() > 0.5  # chance is about 0.2


def test_last_state_by_hand():
    """One sequence, step by step with the cell's equations."""
    queries, corpus = simulate(events=5)
    scale = TimeScale.fit(corpus)
    torch.manual_seed(0)
    network = GRUEncoder(4, GRUSettings()).eval()
    inputs = scale.inputs(pad(queries, np.array([2])))
    with torch.no_grad():
        state = torch.zeros(64)
        for i in range(5):
            event = torch.cat([network.embedding(inputs.marks[0, i]), inputs.values[0, i, :2]])
            from_event = network.gru.weight_ih_l0 @ event + network.gru.bias_ih_l0
            from_state = network.gru.weight_hh_l0 @ state + network.gru.bias_hh_l0
            (r_x, z_x, n_x), (r_h, z_h, n_h) = from_event.chunk(3), from_state.chunk(3)
            update = torch.sigmoid(z_x + z_h)
            state = (1 - update) * torch.tanh(n_x + torch.sigmoid(r_x + r_h) * n_h) + update * state
        projected = network.project(state)
        assert torch.allclose(network(inputs)[0], projected / projected.norm(), atol=1e-5)


def test_padding_and_company_change_nothing():
    queries, corpus = simulate()
    model = GRU(**QUICK).fit(queries, corpus)
    long = EventSequences.from_lists([(np.arange(200.0), np.arange(200) % 4)], mark_names=queries.mark_names)
    alone = model.embed(queries[:3])
    together = model.embed(EventSequences.concat([queries[:3].without_columns("group", "split", "source"), long]))
    assert np.allclose(together[:3], alone, atol=1e-5)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert np.allclose(model.score(queries[1], corpus), model.score(queries, corpus)[1], atol=1e-5)


def test_a_mark_never_seen_is_embedded():
    queries, corpus = simulate()
    model = GRU(**QUICK).fit(queries, corpus)
    strange = EventSequences.from_lists([([0.0, 1.0, 2.0], [0, 9, 1])])
    assert np.isfinite(model.embed(strange, unknown_marks="keep")).all()


def test_repeats_and_is_saved_completely(tmp_path):
    queries, corpus = simulate()
    model = GRU(**QUICK).fit(queries, corpus, seed=1)
    assert (GRU(**QUICK).fit(queries, corpus, seed=1).embed(corpus) == model.embed(corpus)).all()
    assert (GRU(**QUICK).fit(queries, corpus, seed=2).embed(corpus) != model.embed(corpus)).any()
    loaded = GRU.load(model.save(tmp_path / "m"))
    assert (loaded.embed(corpus) == model.embed(corpus)).all()
    assert loaded.settings == model.settings
    assert loaded.card == model.to_state().card
    assert loaded.card.seed == 1


def test_budget_is_kept():
    queries, corpus = simulate()
    model = GRU(**{**QUICK, "loop": {"steps": 1_000_000, "evaluations": 1}}).fit(queries, corpus, max_seconds=0.3)
    assert 0 < len(model.log.records) < 10_000


def test_not_trained_is_said(tmp_path):
    with pytest.raises(UserError, match="not trained"):
        GRU().embed(simulate()[1])
    with pytest.raises(UserError, match="not trained"):
        GRU().save(tmp_path / "m")
