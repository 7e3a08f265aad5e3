"""Golden figures: what every method computes on a small data set, with a fixed seed and without a time budget.

    python tests/golden/golden_figures.py          # after raising the version of what you changed on purpose

A figure may move only together with the version of its method. `test_golden.py` compares; this script writes
`figures.json` again and refuses to where a figure moved and its version did not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from golden_data import golden_data

FILE = Path(__file__).with_name("figures.json")
SEED = 3
TOLERANCE = 2e-3  # of a score: other processors round differently
Figures = dict[str, Any]

_SHORT = {"warm_up": {"steps": 4}, "joint": {"steps": 12}}
_METRIC = {**_SHORT, "head": {"steps": 40}}
_CROSS = {"memory": {"out_of_fold_steps": 40, "cells": 4096}}
_LITERAL = {"process": {"loop": {"steps": 6}}}
_LOOP = {"loop": {"steps": 25}}


def _self(preset: str, **settings: Any) -> Callable[[], Any]:
    def made() -> Any:
        from neuroseqret.models.self_attention.model import SelfAttention

        return SelfAttention(preset, **settings)

    return made


def _second(name: str, preset: str, first: dict[str, Any], **settings: Any) -> Callable[[], Any]:
    def made() -> Any:
        from neuroseqret import methods

        queries, corpus = golden_data()
        trained = _self(preset, **first)().fit(queries, corpus, seed=SEED)
        return methods.make(name, preset, first_stage=trained, **settings)

    return made


def _named(name: str, **settings: Any) -> Callable[[], Any]:
    def made() -> Any:
        from neuroseqret import methods

        return methods.make(name, **settings)

    return made


METHODS: dict[str, Callable[[], Any]] = {
    "self": _self("default", **_METRIC),
    "self unwarping similarity": _self("default", unwarp={}, similarity={"form": "normalised"}, **_METRIC),
    "self fisher all": _self("default", vector={"fisher": "all"}, encoder={"width": 8}, **_METRIC),
    "self linear hinge": _self("default", projection={"kind": "linear"}, loss={"kind": "hinge"}, **_METRIC),
    "self paper": _self("paper", joint={"steps": 12}),
    "cross": _second("cross", "default", _METRIC, **_CROSS),
    "cross paper": _second("cross", "paper", {"joint": {"steps": 6}}, **_LITERAL),
    "hash-cross": _second("hash-cross", "default", _METRIC, **_CROSS),
    "hash-cross paper": _second("hash-cross", "paper", {"joint": {"steps": 6}}, **_LITERAL),
    "random": _named("random"),
    "histogram": _named("histogram"),
    "histogram-metric": _named("histogram-metric", **_LOOP),
    "gru": _named("gru", **_LOOP),
    "mass": _named("mass"),
    "udtw": _named("udtw"),
    "sharp": _named("sharp"),
    **{name: _named(name, steps=15) for name in ("rmtpp", "sahp", "thp", "rank-rmtpp", "rank-sahp", "rank-thp")},
}


def figures_of(name: str) -> Figures:
    """Scores of some pairs, coordinates of some embeddings, and the mean AP of the test queries."""
    queries, corpus = golden_data()
    model = METHODS[name]().fit(queries, corpus, seed=SEED)
    asked = queries[np.flatnonzero(np.array(queries.column("split").to_pylist()) == "test")]
    scores = np.asarray(model.score(asked, corpus), np.float64)
    own = np.array(asked.groups.to_pylist())[:, None] == np.array(corpus.groups.to_pylist())
    found: Figures = {"AP": round(_mean_average_precision(scores, own), 6), "scores": _some(scores)}
    if hasattr(model, "embed"):
        found["embedding"] = _some(np.asarray(model.embed(asked, "query"), np.float64))
    return found


def _some(matrix: np.ndarray) -> list[float]:
    """Some numbers from all over the matrix."""
    flat = matrix.ravel()
    return [float(f"{x:.6g}") for x in flat[:: max(1, len(flat) // 24)]]


def _mean_average_precision(scores: np.ndarray, relevant: np.ndarray) -> float:
    order = np.argsort(-scores, axis=1, kind="stable")
    truth = np.take_along_axis(relevant, order, 1)
    precision = np.cumsum(truth, axis=1) / np.arange(1, truth.shape[1] + 1)
    return float(((precision * truth).sum(1) / truth.sum(1)).mean())


HASHES: dict[str, dict[str, Any]] = {
    "hyperplanes": {},
    "rotation": {},
    "network": {"steps": 20},
    "network paper": {"preset": "paper", "steps": 20},
}


def hash_figures(name: str) -> Figures:
    """The margins of some embeddings under a fitted hash function."""
    from neuroseqret.candidates import make_hash

    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fitted = make_hash(name.split()[0], bits=24, **HASHES[name]).fit(rows, seed=SEED)
    return {"margins": _some(np.asarray(fitted.margins(rows[:20]), np.float64))}
