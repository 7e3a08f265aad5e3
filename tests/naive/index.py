"""Slow, obvious references of the index room, and a tiny deterministic model to test it with."""

from __future__ import annotations

import numpy as np
import torch
from pydantic import BaseModel

from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.base import Embedder
from neuroseqret.models.card import ModelCard, ModelState


class TinySettings(BaseModel):
    marks: int = 4
    dimension: int = 16
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None


def card(name, **fields):
    return ModelCard(**{"model": name, "method_version": 1, "marks": 4, "seed": 0, "corpus_fingerprint": ""} | fields)


class TinyEmbedder(Unlearned, Embedder):
    """Histogram of marks and of the gaps' sizes through a fixed random matrix."""

    name = "tiny"

    def __init__(self, marks=4, dimension=16, mark_names=None, time_unit=None, preset=None):
        known = {"marks": marks, "mark_names": mark_names, "time_unit": time_unit}
        super().__init__(TinySettings(dimension=dimension, **known))
        self.card = card(self.name, settings=self.settings.model_dump(mode="json"), **known)
        self.marks, self.dimension = marks, dimension
        rng = np.random.default_rng(1)
        self.matrix = torch.from_numpy(rng.normal(size=(marks + 12, dimension)).astype(np.float32))

    def compute_embeddings(self, many, role):
        rows = np.repeat(np.arange(len(many)), many.lengths)
        counts = np.zeros((len(many), self.marks + 12), np.float64)
        known = many.marks < self.marks
        np.add.at(counts, (rows[known], many.marks[known]), 1.0)
        gaps = np.diff(many.times, prepend=0.0)
        gaps[many.offsets[:-1]] = 0
        sizes = np.clip(np.log2(np.maximum(gaps, 1e-9)) + 6, 0, 11)
        low = np.floor(sizes).astype(int)
        np.add.at(counts, (rows, self.marks + low), 1 - (sizes - low))
        np.add.at(counts, (rows, self.marks + np.minimum(low + 1, 11)), sizes - low)
        vectors = (counts / many.lengths[:, None] - 0.08) @ self.matrix.numpy()
        return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def to_state(self):
        return ModelState(self.trained_card(), {"matrix": self.matrix})


class LengthReranker(Unlearned):
    """Prefers candidates of the query's length: an order that no embedding gives."""

    name = "length"

    def __init__(self, preset=None):
        super().__init__(NoSettings())
        self.card = card(self.name)

    def compute_scores(self, queries, candidates):
        return -np.abs(queries.lengths[:, None] - candidates.lengths[None]).astype(np.float32)


def some_sequences(n, seed=0, marks=4, prefix="s", shortest=3, longest=30, **columns):
    """Random sequences with ids, groups and a role."""
    rng = np.random.default_rng(seed)
    pairs = []
    for _ in range(n):
        length = int(rng.integers(shortest, longest + 1))
        scale = np.exp(rng.normal())
        weights = rng.dirichlet(np.ones(marks))
        pairs.append((np.cumsum(rng.exponential(scale, length)), rng.choice(marks, length, p=weights)))
    return EventSequences.from_lists(
        pairs,
        ids=[f"{prefix}{i}" for i in range(n)],
        groups=[f"g{i % 7}" for i in range(n)],
        metadata={"role": [("GK", "DF", "MF")[i % 3] for i in range(n)], "year": [2000 + i % 20 for i in range(n)]},
        **columns,
    )


def ranking(model, query, corpus):
    """(id, score) of the whole corpus for one query, best first, by a loop over pairs."""
    q = model.embed(query, "query")[0]
    scored = [(c.id, float(np.dot(q, model.embed(c, "corpus")[0]))) for c in corpus]
    return sorted(scored, key=lambda pair: -pair[1])


def best_rows(matrix, query, candidates, allowed, number):
    """Rows of the largest dot products, ties by row."""
    rows = [int(r) for r in candidates if not len(allowed) or allowed[r]]
    return sorted(rows, key=lambda r: (-float(np.dot(matrix[r].astype(np.float64), query)), r))[:number]
