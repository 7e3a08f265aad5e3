"""On data where the paper's assumptions hold, every part of its model shows its worth; fixed seeds, tiny networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from experiments import hash_curve, simulated
from experiments.hashing import at_share
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.result_cells import ResultCells
from experiments.simulated_data import WINDOW, realisations, warps
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer_from
from neuroseqret.models.self_attention.model import SelfAttention

TINY = {
    "encoder": {"width": 8, "dropout": 0.0},
    "batch": {"size": 12, "negatives": 20},
    "joint": {"steps": 80, "learning_rate": 0.01, "evaluations": 1},
    "warm_up": {"steps": 10},
    "joint_epochs": 1000.0,
}


def fitted(data, **settings):
    """A tiny model of preset `paper`, its task, and its MAP of test queries."""
    task = make_task(data.queries, data.corpus, data.relevance, split="test")
    model = SelfAttention("paper", **{**TINY, **settings}).fit(data.queries, data.corpus, seed=0)
    score = answer_from(model.score(task.queries, task.corpus), task).measures["AP"].mean()
    return model, task, 100 * float(score)


def test_unwarping_undoes_the_clock_of_the_queries_and_lifts_map():
    data = warps(groups=24, per_group=5, queries_per_group=6, events=12)
    model, _, with_u = fitted(data)
    _, _, without = fitted(data, unwarp=None)
    assert with_u > without + 3
    with torch.no_grad():
        half = float(model.network.unwarp(torch.tensor([0.75 * WINDOW], dtype=torch.float64))[0])
    assert half < 0.72 * WINDOW  # 0.5 would undo it exactly; the penalty holds it back


@pytest.fixture(scope="module")
def processes():
    return realisations(groups=12, per_group=16, queries_per_group=8)


def test_the_fisher_vector_is_above_pooled_states_and_the_learned_hash_above_hyperplanes(processes):
    model, task, fisher = fitted(processes, unwarp=None)
    _, _, pooled = fitted(processes, unwarp=None, vector={"fisher": "none", "pooled": True})
    assert fisher > pooled + 3
    corpus, queries = model.embed(task.corpus), model.embed(task.queries, "query")
    trees, planes = (hash_curve.curve(way, "toy", corpus, queries, task.relevance) for way in ("trees", "hyperplanes"))
    for measure in ("nDCG@10", "recall@10"):
        assert np.nan_to_num(at_share(trees, 0.15, measure)) > np.nan_to_num(at_share(planes, 0.15, measure))


def test_the_experiment_is_measured_once_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(
        simulated, "DATA", {"warps": lambda seed: warps(4, 3, 4), "realisations": lambda seed: warps(4, 3, 4)}
    )
    monkeypatch.setattr(simulated, "HASHES", ("exhaustive", "hyperplanes", "trees"))
    quick = {"with U": TINY | {"joint": {"steps": 2}}, "without U": TINY | {"joint": {"steps": 2}, "unwarp": None}}
    monkeypatch.setattr(simulated, "ROWS", {"warps": quick, "realisations": {}})
    lab = Lab({}, ResultCells(tmp_path / "cells"), tmp_path / "models", seeds=1)
    simulated.measure(lab)
    kept = list(lab.cells.all())
    assert len(kept) == 2
    assert not [result for _, _, result in kept if "error" in result]
    lab.say = pytest.fail  # a second run has nothing to say
    simulated.measure(lab)
    measured = Measured(lab.cells)
    assert measured.data == []
    assert "with U" in simulated.report(measured)
    assert "U gives" in str(simulated.findings(measured)[0])
