"""A correction: what a second stage adds to its first stage.

A second stage is a trained `SelfAttention` plus one `Correction`, chosen by the settings. A correction learns from a
task, scores pairs, and can be saved as tensors and constants. An `EmbeddingCorrection` also gives each sequence a
vector, so that it can be indexed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

import numpy as np
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Role, Scores
from neuroseqret.models.card import Outcome
from neuroseqret.models.cross.presets import CrossSettings
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask


class Correction(ABC):
    """Scores pairs of sequences, given a trained first stage."""

    #: Whether the first stage may have a score that is not a cosine.
    takes_any_first_stage = True

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        self.first_stage, self.settings = first_stage, settings

    @abstractmethod
    def fit(self, task: TrainingTask, checkpoint: Checkpoint | None) -> Outcome:
        """Learn from the task, within its budget."""

    @abstractmethod
    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """Return the score of every pair: (queries, candidates)."""

    def first_scores(self, queries: EventSequences, corpus: EventSequences) -> Scores:
        """Return the scores whose best candidates are reranked: (queries, corpus)."""
        return self.first_stage.compute_scores(queries, corpus)

    def listed_scores(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        """Return the scores of the listed corpus rows of each query: (queries, depth)."""
        return np.stack([self.scores(queries[k : k + 1], corpus[rows])[0] for k, rows in enumerate(listed)])

    def embedded_scores(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        """Return the scores of one query, given first-stage embeddings; see `Reranker.score_embedded`."""
        return self.scores(query, events())[0]

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """Return what was learned, by name."""

    def constants(self) -> dict[str, float]:
        """Return single numbers that were learned, by name."""
        return {}

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        """Load what `tensors` and `constants` returned."""


class EmbeddingCorrection(Correction):
    """A correction that also gives each sequence a vector."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of an embedding."""

    @abstractmethod
    def embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Return unit vectors: (sequences, dimension)."""
