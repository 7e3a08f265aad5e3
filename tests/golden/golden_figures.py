"""Golden figures: what every method computes on a small data set, with a fixed seed and without a time budget.

    python tests/golden/golden_figures.py          # after raising the version of what you changed on purpose

A figure may move only together with its version. `test_golden.py` compares; this script records the figures of raised
versions in `figures.json`, and refuses to record a figure that moved while its version did not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # for `experiments`
sys.path.insert(0, str(Path(__file__).parent))

import golden_looks
import golden_settings
from golden_data import SEED, extreme_queries, golden_data

from experiments.result_cells import json_text
from experiments.versions import LOOKS
from neuroseqret import methods
from neuroseqret.candidates import hash_class, make_hash
from neuroseqret.evaluation.protocol import PROTOCOL_VERSION
from neuroseqret.measures import list_measures as lists
from neuroseqret.models.base import Embedder, RelevanceModel

FILE = Path(__file__).with_name("figures.json")
COMMAND = "python tests/golden/golden_figures.py"
TOLERANCE = 2e-3  # of the largest number of a list: other processors round differently
AP_TOLERANCE = 0.02  # rounding may swap two candidates
Figures = dict[str, Any]

_SHORT = {"warm_up": {"steps": 4}, "joint": {"steps": 12}}
_METRIC = {**_SHORT, "head": {"steps": 40}, "selection": {"steps": 10}}
_LINEAR = {"members": [{"kind": "linear"}, {"kind": "whitened", "weight": 0.5}]}
_CROSS = {"memory": {"out_of_fold_steps": 40, "cells": 4096}}
_LITERAL = {"process": {"loop": {"steps": 6}}}
_LOOP = {"loop": {"steps": 25}}
_FIRST = "self for cross paper-literal"


def _made(name: str, preset: str = "default", first: str | None = None, **settings: Any) -> Callable[[], Any]:
    def make() -> Any:
        given = {} if first is None else {"first_stage": fitted(first)}
        return methods.make(name, preset, **given, **settings)

    return make


METHODS: dict[str, Callable[[], Any]] = {
    "self": _made("self", **_METRIC),
    "self neural": _made("self", "neural", **_METRIC),
    "self unwarping similarity": _made("self", "neural", unwarp={}, similarity={"form": "normalised"}, **_METRIC),
    "self fisher all": _made("self", "neural", vector={"fisher": "all"}, encoder={"width": 8}, **_METRIC),
    "self linear hinge": _made("self", projection=_LINEAR, loss={"kind": "hinge"}, **_METRIC),
    "self paper-literal": _made("self", "paper-literal", joint={"steps": 12}),
    "self paper": _made("self", "paper", warm_up={"steps": 4}, joint={"steps": 8}),
    "cross": _made("cross", first="self", **_CROSS),
    "cross paper-literal": _made("cross", "paper-literal", _FIRST, **_LITERAL),
    "hash-cross": _made("hash-cross", first="self", **_CROSS),
    "hash-cross paper-literal": _made("hash-cross", "paper-literal", _FIRST, **_LITERAL),
    "cross paper": _made("cross", "paper", _FIRST, **_LITERAL),
    "hash-cross paper": _made("hash-cross", "paper", _FIRST, **_LITERAL),
    "random": _made("random"),
    "histogram": _made("histogram"),
    "histogram-metric": _made("histogram-metric", **_LOOP),
    "gru": _made("gru", **_LOOP),
    "mass": _made("mass"),
    "udtw": _made("udtw"),
    "sharp": _made("sharp"),
    **{name: _made(name, steps=15) for name in ("rmtpp", "sahp", "thp", "rank-rmtpp", "rank-sahp", "rank-thp")},
}
HASHES: dict[str, dict[str, Any]] = {
    "trees": {"levels": 8},
    "hyperplanes": {},
    "rotation": {},
    "network": {"steps": 20},
    "network paper": {"preset": "paper", "steps": 20},
}


@cache
def fitted(name: str) -> RelevanceModel:
    """Return a method fitted on the golden data; some are the first stage of others."""
    make = _made("self", "paper-literal", joint={"steps": 6}) if name == _FIRST else METHODS[name]
    model: RelevanceModel = make().fit(*golden_data(), seed=SEED)
    return model


def figures_of(name: str) -> Figures:
    """Return scores of some pairs, coordinates of some embeddings, and the mean AP of the test queries."""
    queries, corpus = golden_data()
    model = fitted(name)
    asked = queries[np.flatnonzero(np.array(queries.column("split").to_pylist()) == "test")]
    scores = np.asarray(model.score(asked, corpus), np.float64)
    relevant = np.array(asked.groups.to_pylist())[:, None] == np.array(corpus.groups.to_pylist())
    in_order = np.take_along_axis(relevant, np.argsort(-scores, axis=1, kind="stable"), 1)
    ap = lists.average_precision(in_order, relevant.sum(1)).mean()
    found: Figures = {"AP": round(float(ap), 6), "scores": _some(scores)}
    if isinstance(model, Embedder):
        found["embedding"] = _some(np.asarray(model.embed(asked, "query"), np.float64))
    return found


def extreme_figures(name: str) -> Figures:
    """Return the scores of queries at the limits of what a method clips: one list per query, each with its scale."""
    _, corpus = golden_data()
    asked = extreme_queries()
    scores = np.asarray(fitted(name).score(asked, corpus[::9]), np.float64)
    return {id_: _some(row) for id_, row in zip(asked.ids.to_pylist(), scores, strict=True)}


def hash_figures(name: str) -> Figures:
    """Return the margins of some vectors under a fitted hash function."""
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(600, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    hashed = make_hash(name.split()[0], bits=24, **HASHES[name]).fit(rows, seed=SEED)
    return {"margins": _some(np.asarray(hashed.margins(rows[:20]), np.float64))}


def _some(matrix: np.ndarray) -> list[float]:
    """Return some numbers from all over the matrix."""
    flat = matrix.ravel()
    return [float(f"{x:.6g}") for x in flat[:: max(1, len(flat) // 24)]]


# ---------------------------------------------------------------- compare and record


@dataclass(frozen=True)
class Golden:
    """Something whose figures are golden, its version today, and where that version stands."""

    kind: str  # of figures.json: "methods", "extremes", "hashes", "looks", "method settings", "hash settings"
    name: str
    version: int
    where: str
    figures: Callable[[], Figures]

    @property
    def settings(self) -> bool:
        return self.kind.endswith("settings")

    def complaint(self, recorded: Figures | None, found: Figures) -> str | None:
        """Return what is wrong and what to do, in one line; None if the figures are as recorded."""
        what = f"the defaults of `{self.name}` have" if self.settings else f"what `{self.name}` computes has"
        if recorded is None:
            return f"there are no golden figures of `{self.name}` ({self.kind}): run {COMMAND}"
        if self.version != recorded["version"]:
            return f"{self.where} is {self.version}, and the figures are of {recorded['version']}: run {COMMAND}"
        before = recorded["figures"]
        if moved := self._moved(before, found):
            return f"{what} moved ({moved}): undo the change, or raise {self.where} and run {COMMAND}"
        if before.keys() != found.keys():
            changed = ", ".join(sorted(before.keys() ^ found.keys()))
            return f"{what} other names ({changed}): if `{self.name}` computes what it did, run {COMMAND}"
        return None

    def may_be_recorded(self, recorded: Figures | None, found: Figures) -> bool:
        """Return whether the figures may replace the recorded ones without hiding a change."""
        if recorded is None or self.version > recorded["version"]:
            return True
        return self.version == recorded["version"] and not self._moved(recorded["figures"], found)

    def _moved(self, before: Figures, now: Figures) -> str:
        """Return the first figure that moved, in words; empty if none did. Settings that are new have not moved."""
        for name in before:
            old, new = before[name], now.get(name)
            if name in now and old != new and (self.settings or not nearly_equal(old, new, name)):
                return f"{name}: {_short(old)} was recorded, {_short(new)} found"
        return ""


def nearly_equal(old: Any, new: Any, name: str = "") -> bool:
    """Return whether two figures differ by no more than what another processor rounds."""
    try:
        a, b = np.asarray(old, np.float64), np.asarray(new, np.float64)
    except (TypeError, ValueError):  # texts
        return bool(old == new)
    allowed = AP_TOLERANCE if name == "AP" else TOLERANCE * np.abs(a).max(initial=0)
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=0, atol=allowed))


def _short(value: Any) -> str:
    shown = json.dumps(value)
    return shown if len(shown) < 60 else f"{shown[:57]}..."


def golden() -> Iterator[Golden]:
    """Yield everything that has golden figures."""
    for name in METHODS:
        preset = name.split()[-1] if name.split()[-1] in ("paper", "paper-literal") else "default"
        yield _of_method("methods", name, preset, lambda name=name: figures_of(name))
        yield _of_method("extremes", name, preset, lambda name=name: extreme_figures(name))
    for name, (_, preset) in golden_settings.METHODS.items():
        yield _of_method("method settings", name, preset, lambda name=name: golden_settings.method_settings(name))
    for name in HASHES:
        yield _of_hash("hashes", name, lambda name=name: hash_figures(name))
    for name in golden_settings.HASHES:
        yield _of_hash("hash settings", name, lambda name=name: golden_settings.hash_settings(name))
    yield Golden("looks", "protocol", PROTOCOL_VERSION, "evaluation.protocol.PROTOCOL_VERSION", golden_looks.protocol)
    for name, look in golden_looks.LOOKS.items():
        yield Golden("looks", name, LOOKS[name], f'experiments.versions.LOOKS["{name}"]', look)


def _of_method(kind: str, name: str, preset: str, figures: Callable[[], Figures]) -> Golden:
    found = methods.method_class(name.split()[0])
    return Golden(kind, name, found.version_of(preset), f"{found.__name__}.version", figures)


def _of_hash(kind: str, name: str, figures: Callable[[], Figures]) -> Golden:
    found = hash_class(name.split()[0])
    return Golden(kind, name, found.version, f"{found.__name__}.version", figures)


def read() -> dict[str, dict[str, Figures]]:
    """Return the recorded figures by kind and name."""
    found: dict[str, dict[str, Figures]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main() -> int:
    """Record what may be recorded; say what may not, and return 1 if there is any."""
    before, after, refused = read(), {}, []
    for one in golden():
        recorded, found = before.get(one.kind, {}).get(one.name), one.figures()
        complaint = one.complaint(recorded, found)
        if complaint and one.may_be_recorded(recorded, found):
            recorded = {"version": one.version, "figures": found}
            print(f"{one.kind}: {one.name}: recorded with version {one.version}")
        elif complaint:
            refused.append(complaint)
        after.setdefault(one.kind, {})[one.name] = recorded
    FILE.write_text(json_text(after) + "\n", encoding="utf-8")
    print("\n".join(refused) if refused else f"{FILE.name}: every figure is recorded with its version")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
