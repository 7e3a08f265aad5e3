"""`fit(device=...)`: every method that trains a network trains it on another device, with the same result."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from neuroseqret import methods
from neuroseqret.errors import UserError
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.self_attention import SelfAttention, group_probabilities
from neuroseqret.training import ranks
from pretend_device import DEVICE, pretended
from simulated import simulate

QUERIES, CORPUS = simulate(groups=4, per_group=6, queries_per_group=10, events=9)
SELF: dict[str, Any] = {
    "encoder": {"width": 4, "max_length": 8},
    "vector": {"bank": 8},
    "projection": {"hidden": 6, "dimension": 4},
    "batch": {"size": 8, "crop": 6},
    "warm_up": {"steps": 2},
    "joint": {"steps": 2, "evaluations": 1},
    "head_batch": 8,
    "head": {"steps": 3},
    "selection": {"steps": 2},
}
PAPER = {
    "encoder": {"width": 4},
    "unwarp": {"hidden": 4},
    "warm_up": {"steps": 2},
    "joint": {"steps": 2, "evaluations": 1},
}
CROSS = {"process": {"width": 4, "loop": {"steps": 2}}}
LOOP = {"loop": {"steps": 3}}
#: Method, preset and settings; together they use every network that is trained.
CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "self": ("self", "default", SELF),
    "self many groups": ("self", "default", {**SELF, "batch": {"size": 2}, "head_batch": 2}),
    "self neural": ("self", "neural", SELF),
    "self unwarping": ("self", "neural", {**SELF, "unwarp": {"hidden": 4}, "similarity": {"form": "normalised"}}),
    "self paper": ("self", "paper", PAPER),
    "cross": ("cross", "default", {"memory": {"out_of_fold_steps": 3, "cells": 1024}}),
    "cross paper": ("cross", "paper", CROSS),
    "hash-cross paper": ("hash-cross", "paper", CROSS),
    "histogram-metric": ("histogram-metric", "default", LOOP),
    "gru": ("gru", "default", {**LOOP, "hidden": 4, "dimension": 4}),
    "rank-rmtpp": ("rank-rmtpp", "default", {"steps": 3}),
    "sahp": ("sahp", "default", {"steps": 2}),
    "thp": ("thp", "default", {"steps": 2}),
}
DOUBLE = ("hash-cross paper",)  # needs double precision, as the documentation says
ON_CPU = ("random", "histogram", "mass", "udtw", "sharp")


@cache
def first_stage(preset: str) -> SelfAttention:
    """A first stage that is trained on the CPU."""
    return SelfAttention(preset, **(SELF if preset == "default" else PAPER)).fit(QUERIES, CORPUS)


def made(case: str) -> RelevanceModel:
    """A new method."""
    name, preset, settings = CASES[case]
    if name in ("cross", "hash-cross"):
        settings = {**settings, "first_stage": first_stage(preset)}
    return methods.make(name, preset, **settings)


@pytest.mark.parametrize("case", CASES)
def test_training_on_another_device_gives_the_same(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the pretended device a tensor that is left on the CPU is an error, and all numbers are real."""
    if case == "self many groups":
        monkeypatch.setattr(group_probabilities, "KEPT", 2)
    expected = made(case).fit(QUERIES, CORPUS, seed=2).score(QUERIES[:4], CORPUS)
    model = made(case)
    with pretended(double_precision=case in DOUBLE):
        model.fit(QUERIES, CORPUS, seed=2, device=DEVICE)
    found = model.score(QUERIES[:4], CORPUS)  # outside of it: the trained method is on the CPU
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3 * np.abs(expected).max())


def test_every_method_is_tested() -> None:
    tested = {methods.method_class(name) for name, _, _ in CASES.values()}
    ranked = {"rmtpp", "rank-sahp", "rank-thp"}  # networks and losses of these are among the cases
    assert {method.name for method in tested} | set(ON_CPU) | ranked | {"hash-cross"} == {*MODELS, *BASELINES}
    assert {n for n in (*MODELS, *BASELINES) if not methods.method_class(n).trains_on_devices} == set(ON_CPU)


def test_a_tensor_on_the_wrong_device_is_noticed() -> None:
    with pretended() as device:
        moved = torch.ones(3).to(device)
        assert (moved + moved).cpu().tolist() == [2.0, 2.0, 2.0]
        with pytest.raises(RuntimeError, match="two devices"):
            moved + torch.ones(3)
        with pytest.raises(TypeError, match="copy it to the CPU first"):
            moved.numpy()
        with pytest.raises(TypeError, match="no double-precision"):
            torch.ones(3, dtype=torch.float64).to(device)


@pytest.mark.parametrize("name", ON_CPU)
def test_methods_without_a_network_train_on_the_cpu(name: str) -> None:
    with pytest.raises(UserError, match=f"'{name}' trains on the CPU only; leave out the device 'cuda'"):
        methods.make(name).fit(QUERIES, CORPUS, device="cuda")


def test_an_absent_device_and_several_processes_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(UserError, match="torch finds no 'cuda' device"):
        SelfAttention().fit(QUERIES, CORPUS, device="cuda")
    monkeypatch.setattr(ranks, "number", lambda: 2)
    with pytest.raises(UserError, match="several processes train on the CPU"):
        SelfAttention().fit(QUERIES, CORPUS, device="cuda")
