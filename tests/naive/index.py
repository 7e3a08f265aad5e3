"""Slow, obvious references of the index, and two tiny deterministic models to test it with."""

from __future__ import annotations

import numpy as np
import torch

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.models.base import Embedder, RelevanceModel
from neuroseqret.models.model_folder import read_model, write_model


class TinyEmbedder(Embedder):
    """Embeds by histograms of marks and of gap sizes, through a fixed random matrix."""

    name = "tiny"

    def __init__(self, marks=4, dimension=16, mark_names=None, time_unit=None):
        self.marks, self.dimension = marks, dimension
        self.mark_names, self.time_unit = mark_names, time_unit
        rng = np.random.default_rng(1)
        self.matrix = torch.from_numpy(rng.normal(size=(marks + 12, dimension)).astype(np.float32))

    def fit(self, queries, corpus, relevance=None, **_):
        return self

    def embed(self, sequences, role="corpus"):
        many = EventSequences.of(sequences)
        rows = np.repeat(np.arange(len(many)), many.lengths)
        counts = np.zeros((len(many), self.marks + 12), np.float64)
        np.add.at(counts, (rows, many.marks), 1.0)
        gaps = np.diff(many.times, prepend=0.0)
        gaps[many.offsets[:-1]] = 0
        sizes = np.clip(np.log2(np.maximum(gaps, 1e-9)) + 6, 0, 11)
        low = np.floor(sizes).astype(int)
        np.add.at(counts, (rows, self.marks + low), 1 - (sizes - low))
        np.add.at(counts, (rows, self.marks + np.minimum(low + 1, 11)), sizes - low)
        vectors = (counts / many.lengths[:, None] - 0.08) @ self.matrix.numpy()
        return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)).astype(np.float32)

    def save(self, folder):
        names = None if self.mark_names is None else list(self.mark_names)
        config = {"marks": self.marks, "dimension": self.dimension, "mark_names": names, "time_unit": self.time_unit}
        return write_model(folder, self.name, config, {"matrix": self.matrix})

    @classmethod
    def load(cls, folder):
        config, _ = read_model(folder, cls.name)
        names = config["mark_names"]
        return cls(config["marks"], config["dimension"], None if names is None else tuple(names), config["time_unit"])


class LengthReranker(RelevanceModel):
    """Prefers candidates of the query's length: an order that no embedding gives."""

    name = "length"

    def fit(self, queries, corpus, relevance=None, **_):
        return self

    def score(self, queries, candidates):
        many = EventSequences.of(queries)
        scores = -np.abs(many.lengths[:, None] - candidates.lengths[None]).astype(np.float32)
        return scores[0] if isinstance(queries, EventSequence) else scores

    def save(self, folder):
        return write_model(folder, self.name, {}, {})

    @classmethod
    def load(cls, folder):
        read_model(folder, cls.name)
        return cls()


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
