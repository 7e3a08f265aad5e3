r"""Histograms under a learned metric: how far relevance takes features that know nothing of point processes.

.. math:: v' = \mathrm{norm}(W_2\, \mathrm{ReLU}(W_1 f + b_1) + b_2)

with f the unit vector of the z-scored histograms (`neuroseqret.baselines.histogram`), 256 hidden units, 64 dimensions
and dropout .2 on the input, trained by the in-batch softmax. It is the metric head of the models on the simplest
vectors there are, and takes seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor
from typing_extensions import Self

from neuroseqret.baselines.contrastive import Side, train_contrastive
from neuroseqret.baselines.folders import MEANING, fitting_together, under
from neuroseqret.baselines.histogram import Histogram, markov_config, markov_of
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split, split_rows_if_any
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings


class Settings(BaseModel):
    """Sizes and how it learns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    hidden: int = 256
    dimension: int = 64
    dropout: float = 0.2
    temperature: float = 0.1
    batch: int = 128
    loop: LoopSettings = LoopSettings(steps=2500, learning_rate=2e-3, weight_decay=1e-3, evaluations=10)


class HistogramMetric(Embedder):
    """Histogram features through a small network trained on relevance."""

    name: ClassVar[str] = "histogram-metric"

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.histogram = Histogram()
        self.projection: Projection | None = None
        self.info: dict[str, Any] = {}
        self.log = TrainingLog()

    def fit(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        **options: Any,
    ) -> Self:
        queries = ensure_split(queries, seed)
        relevance = Relevance.from_groups(queries, corpus) if relevance is None else relevance
        self.histogram.fit(None, corpus)
        known = torch.zeros(len(queries), self.size)
        for split in ("train", "validation"):  # test queries are not even turned into features
            rows = split_rows_if_any(queries, split)
            known[rows] = torch.from_numpy(self.histogram.embed(queries[rows]))
        vectors = {"query": known, "corpus": torch.from_numpy(self.histogram.embed(corpus))}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            projection = self._build()

        def encode(side: Side, rows: IntArray) -> Tensor:
            return projection(vectors[side][rows])

        self.log = TrainingLog()
        result = train_contrastive(
            projection,
            encode,
            lambda side, rows: encode(side, rows).numpy(),
            queries,
            relevance,
            self.settings.loop.model_copy(update={"max_seconds": max_seconds}),
            size=self.settings.batch,
            temperature=self.settings.temperature,
            seed=seed,
            log=self.log,
        )
        self.projection = projection
        self.info = {**self.histogram.info, "seed": seed, "validation": {"AP": result.best}}
        return self

    @property
    def size(self) -> int:
        """Number of histogram features."""
        assert self.histogram.markov is not None
        return self.histogram.markov.size

    def _build(self) -> Projection:
        own = self.settings
        return Projection(self.size, "mlp", own.hidden, own.dimension, own.dropout)

    def _fitted(self) -> Projection:
        if self.projection is None:
            raise UserError(f"the {self.name} baseline is not fitted; call fit or load a model folder")
        return self.projection

    @torch.no_grad()
    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        projection = self._fitted().eval()
        vectors: Scores = projection(torch.from_numpy(self.histogram.embed(sequences))).numpy()
        return vectors

    def save(self, folder: str | PathLike[str]) -> Path:
        projection = self._fitted()
        assert self.histogram.markov is not None
        config = {**self.info, "settings": self.settings.model_dump(), **markov_config(self.histogram.markov)}
        tensors = {f"markov.{k}": v for k, v in self.histogram.markov.tensors.items()}
        tensors |= {f"projection.{k}": v for k, v in projection.state_dict().items()}
        return write_model(folder, self.name, config, tensors, self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        with fitting_together(folder):
            made = cls(**config["settings"])
            made.histogram.markov = markov_of(config, under(tensors, "markov"))
            made.histogram.info = {name: config[name] for name in MEANING}
            made.projection = made._build()
            made.projection.load_state_dict(under(tensors, "projection"))
            made.info = {name: config[name] for name in (*MEANING, "seed", "validation")}
        made.projection.eval()
        return made
