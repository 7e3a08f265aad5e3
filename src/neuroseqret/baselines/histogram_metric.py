r"""Histograms under a learned metric: how much relevance adds to features that no point process was needed for.

.. math:: v' = \mathrm{norm}(W_2\, \mathrm{ReLU}(W_1 f + b_1) + b_2)

where f is the unit vector of the z-scored histograms (`neuroseqret.baselines.histogram`), with 256 hidden units, 64
dimensions and dropout 0.2 on the input, trained by the in-batch softmax. It is the metric of the models on the
simplest vectors, and trains in seconds.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor

from neuroseqret.baselines.contrastive import ContrastiveSettings, train_contrastive
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Resumable, Role, Scores
from neuroseqret.models.card import ModelState, Outcome, prefixed, under
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.training.loop import LoopSettings
from neuroseqret.training.task import TrainingTask


class HistogramMetricSettings(ContrastiveSettings):
    """Sizes, and how it learns."""

    hidden: int = Field(default=256, ge=1)
    dimension: int = Field(default=64, ge=1)
    dropout: float = 0.2
    batch: int = 128
    loop: LoopSettings = LoopSettings(steps=2500, learning_rate=2e-3, weight_decay=1e-3, evaluations=10)


class HistogramMetric(Histogram, Resumable):
    """Histograms through a network that learns from relevance; `settings` replace any of `HistogramMetricSettings`."""

    name: ClassVar[str] = "histogram-metric"
    needs_labels: ClassVar[bool] = True
    shares_training: ClassVar[bool] = True
    trains_on_devices: ClassVar[bool] = True
    settings: HistogramMetricSettings
    projection: Projection

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = HistogramMetricSettings(**settings)

    def learn(self, task: TrainingTask) -> Outcome:
        """Fit the histograms to the corpus, then train the metric on relevant pairs."""
        super().learn(task)
        vectors = {"query": self._query_vectors(task), "corpus": self._histograms(task.corpus)}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            self.projection = projection = self._make_projection().to(task.device)

        def encode(role: Role, rows: IntArray) -> Tensor:
            unit: Tensor = projection(vectors[role][rows].to(task.device))
            return unit

        outcome = train_contrastive(
            projection,
            encode,
            lambda role, rows: encode(role, rows).cpu().numpy(),
            task,
            self.settings,
            task.checkpoint(self.name, self.settings.model_dump_json()),
        )
        projection.cpu()
        return outcome

    def _query_vectors(self, task: TrainingTask) -> Tensor:
        """Histograms of the train and validation queries; test queries are not even turned into features."""
        vectors = torch.zeros(len(task.queries), self.markov.size)
        for rows in (task.train_rows_if_any, task.validation_rows):
            vectors[rows] = self._histograms(task.queries[rows])
        return vectors

    def _histograms(self, sequences: EventSequences) -> Tensor:
        """Unit vectors before the metric: (sequences, features)."""
        return torch.from_numpy(super().compute_embeddings(sequences, "corpus"))

    def _make_projection(self) -> Projection:
        own = self.settings
        return Projection(self.markov.size, "mlp", own.hidden, own.dimension, own.dropout)

    @torch.no_grad()
    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        histograms = self._histograms(sequences)
        vectors: Scores = self.projection.eval()(histograms).numpy()
        return vectors

    def to_state(self) -> ModelState:
        plain = super().to_state()
        return ModelState(plain.card, {**plain.tensors, **prefixed("projection", self.projection.state_dict())})

    def restore(self, state: ModelState) -> None:
        super().restore(state)
        self.projection = self._make_projection()
        self.projection.load_state_dict(under(state.tensors, "projection"))
        self.projection.eval()
