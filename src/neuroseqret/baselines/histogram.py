"""Histograms and cosine: the simple baseline that a relevance model has to beat.

Mark unigrams and bigrams, gap histograms on the data's scale and on the sequence's own, gaps beside marks and beside
the gap before, moments of the log gaps; each centred and scaled by the corpus' mean and standard deviation; the
score is the cosine. These are the features of `neuroseqret.processes.markov_renewal`, which the models take in too,
so this baseline is theirs without the neural process and without any learning from relevance.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from torch import Tensor
from typing_extensions import Self

from neuroseqret.baselines.folders import MEANING, fitting_together, meaning
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale


class Histogram(Embedder):
    """Unit vectors of z-scored histograms; nothing is learned but the corpus' means and deviations."""

    name: ClassVar[str] = "histogram"

    def __init__(self) -> None:
        self.markov: MarkovRenewal | None = None
        self.info: dict[str, Any] = {}

    def fit(
        self,
        queries: EventSequences | None,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        **options: Any,
    ) -> Self:
        """Edges, means and deviations of the corpus; queries and relevance are not looked at."""
        if not len(corpus):
            raise UserError("the corpus is empty; there is nothing to scale by")
        self.markov = MarkovRenewal.fit(corpus, TimeScale.fit(corpus), max(corpus.num_marks, 1))
        self.info = meaning(corpus)
        return self

    def features(self, sequences: EventSequences) -> Scores:
        """Z-scored histograms before normalisation: (sequences, size)."""
        if self.markov is None:
            raise UserError(f"the {self.name} baseline is not fitted; call fit or load a model folder")
        return self.markov.features(sequences)

    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        features = self.features(EventSequences.of(sequences))
        return features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)

    def save(self, folder: str | PathLike[str]) -> Path:
        if self.markov is None:
            raise UserError(f"the {self.name} baseline is not fitted; there is nothing to save")
        return write_model(folder, self.name, {**self.info, **markov_config(self.markov)}, self.markov.tensors)

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        made = cls()
        with fitting_together(folder):
            made.markov = markov_of(config, tensors)
            made.info = {name: config[name] for name in MEANING}
        return made


def markov_config(markov: MarkovRenewal) -> dict[str, Any]:
    return {"marks": markov.marks, "scale": markov.scale.model_dump()}


def markov_of(config: dict[str, Any], tensors: dict[str, Tensor]) -> MarkovRenewal:
    """The features' definition back from a model folder."""
    return MarkovRenewal(TimeScale.model_validate(config["scale"]), int(config["marks"]), tensors)
