from __future__ import annotations

import numpy as np
import pytest
import torch

from naive import hashing as naive
from neuroseqret.candidates import HashNetwork
from neuroseqret.candidates import hash_objective as objective
from neuroseqret.candidates.hash_network import PRESETS
from neuroseqret.errors import UserError


def some(seed, n=7, r=5, d=4):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(n, d))
    return np.tanh(rng.normal(size=(n, r))), v / np.linalg.norm(v, axis=1, keepdims=True)


@pytest.mark.parametrize("preset", [name for name in PRESETS if name.startswith("paper")])
@pytest.mark.parametrize("seed", range(5))
def test_the_papers_objective_is_its_equation(preset, seed):
    h, v = some(seed)
    network = HashNetwork(bits=5, preset=preset)
    assert network.loss(torch.tensor(v), torch.tensor(h), len(h)).item() == pytest.approx(
        naive.paper_objective(h.tolist(), network.weights[:3])
    )
    assert sum(network.weights) == pytest.approx(1)


def test_each_ablation_leaves_one_term_out():
    dropped = {n: [i for i in range(3) if PRESETS[n][i] == 0] for n in PRESETS if n.startswith("paper-")}
    assert sorted(dropped.values()) == [[0], [1], [2]]


@pytest.mark.parametrize("seed", range(5))
def test_the_further_terms_are_their_equations(seed):
    h, v = some(seed)
    similarity, balance, decorrelation = naive.extra_terms(h, v)
    assert objective.similarity(torch.tensor(h), torch.tensor(v)).item() == pytest.approx(similarity)
    assert objective.balance(torch.tensor(h)).item() == pytest.approx(balance)
    assert objective.decorrelation(torch.tensor(h)).item() == pytest.approx(decorrelation)


def test_a_batch_stands_for_the_corpus():
    h, _ = some(0)
    twice = torch.tensor(np.concatenate([h, h]))
    whole = objective.redundancy(twice)
    assert objective.redundancy(torch.tensor(h), corpus_size=len(twice)).item() == pytest.approx(whole.item())


@pytest.mark.parametrize("preset", ["paper", "default"])
def test_training_lowers_the_objective(preset):
    v = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    network = HashNetwork(bits=32, preset=preset, steps=120, batch=200).fit(v)
    assert network.losses[-1] < 0.9 * network.losses[0]


def test_eta_overrides_the_preset_and_is_checked():
    assert HashNetwork(preset="paper", eta=(0.2, 0.3, 0.5)).weights == (0.2, 0.3, 0.5, 0, 0, 0)
    with pytest.raises(UserError, match="sum to 1"):
        HashNetwork(eta=(0.2, 0.2, 0.2))
    with pytest.raises(UserError, match="no hash preset"):
        HashNetwork(preset="best")
    with pytest.raises(UserError, match="not fitted"):
        HashNetwork().margins(np.zeros((1, 4), np.float32))


def test_fitting_leaves_the_global_random_state_alone():
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)
    HashNetwork(bits=4, steps=1).fit(np.eye(4, dtype=np.float32))
    assert torch.equal(torch.rand(1), expected)
