"""A correction: what a second stage adds to its first stage.

A second stage is a trained `SelfAttention` and one `Correction`; which one is chosen by the settings. A correction
scores pairs, learns from a task, and gives itself as tensors and constants. An `EmbeddingCorrection` also gives every
sequence a vector of its own, which can be indexed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

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
    """Scores pairs, starting from what a trained first stage knows."""

    #: Whether it can be put on a first stage whose score is more than a cosine.
    takes_any_first_stage = True

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        self.first_stage, self.settings = first_stage, settings

    @abstractmethod
    def fit(self, task: TrainingTask, checkpoint: Checkpoint | None) -> Outcome:
        """Learn from the task's queries, within its budget."""

    @abstractmethod
    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """The second stage's score of every pair: (queries, candidates)."""

    def listed_scores(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        """Scores of the listed corpus rows of each query: (queries, depth)."""
        return np.stack([self.scores(queries[k : k + 1], corpus[rows])[0] for k, rows in enumerate(listed)])

    #: Whether the scores of all pairs of a corpus cost little more than those of a list.
    cheap_for_all_pairs = False

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """What was learned."""

    def constants(self) -> dict[str, float]:
        """Single numbers that were learned, by name."""
        return {}

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        """Take over what `tensors` and `constants` gave."""


class EmbeddingCorrection(Correction):
    """A correction whose sequences have vectors of their own."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of an embedding."""

    @abstractmethod
    def embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Unit vectors: (sequences, dimension)."""
