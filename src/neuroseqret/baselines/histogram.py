"""Cosine of histograms: the simple baseline that a relevance model has to beat.

The features are shares of marks and mark pairs, histograms of gaps on the scale of the data and on the sequence's own,
histograms of gaps together with marks and with the previous gap, and moments of the log gaps. Each is centred and
scaled by its mean and standard deviation over the corpus; the score is the cosine. They are the features of
`neuroseqret.processes.markov_renewal`, which the models use too: this baseline is a model without the neural process
and without anything learned from relevance.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neuroseqret.baselines.settings import NoSettings
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.card import ModelState, Outcome, prefixed, under
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.training.task import TrainingTask


class Histogram(Embedder):
    """Compares histograms of marks and gaps; only the mean and deviation of each bin are learned."""

    name: ClassVar[str] = "histogram"
    needs_labels: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__(NoSettings())
        self._markov: MarkovRenewal | None = None

    @property
    def markov(self) -> MarkovRenewal:
        """The definition of the features; an untrained method has none."""
        if self._markov is None:
            raise UserError(f"{self.name!r} is not trained; call fit or load a model folder")
        return self._markov

    def learn(self, task: TrainingTask) -> Outcome:
        """Fit bin edges, means and deviations to the corpus; queries and relevance are not used."""
        corpus = task.given_corpus
        self._markov = MarkovRenewal.fit(corpus, TimeScale.fit(corpus), max(corpus.num_marks, 1))
        return Outcome({}, {})

    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        features = self.markov.features(sequences)
        return features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)

    def to_state(self) -> ModelState:
        markov = self.markov
        return ModelState(self.trained_card(time_scale=markov.scale), prefixed("markov", markov.tensors))

    def restore(self, state: ModelState) -> None:
        scale = TimeScale.model_validate(state.card.time_scale)  # a card without one does not fit
        self._markov = MarkovRenewal(scale, state.card.marks, under(state.tensors, "markov"))
