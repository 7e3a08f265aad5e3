"""The verbs that every method has, ours and the baselines: `fit`, `score`, `save`, `load`, and `embed` for some.

A method sees event sequences and relevance, nothing else; evaluation, index and command line see a method only
through these verbs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequence, EventSequences

Scores = npt.NDArray[np.float32]
Role = Literal["query", "corpus"]


class RelevanceModel(ABC):
    """Scores corpus sequences by their relevance to a query; higher is more relevant."""

    name: ClassVar[str]
    #: Raised by hand when what the method computes changes; kept with every result (see tests/golden).
    version: ClassVar[int] = 1

    @abstractmethod
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
        """Learn from the queries whose `split` is train, select on those whose `split` is validation.

        Queries of any other split are never looked at. Without a `split` column the queries are split here, by
        `source` where there is one. `relevance` defaults to `Relevance.from_groups(queries, corpus)`.
        """

    @abstractmethod
    def score(
        self,
        queries: EventSequence | EventSequences | Iterable[EventSequence],
        candidates: EventSequences,
    ) -> Scores:
        """Relevance of every candidate: (candidates,) for one `EventSequence`, else (queries, candidates)."""

    @abstractmethod
    def save(self, folder: str | PathLike[str]) -> Path:
        """Write the model folder: `config.json` and `model.safetensors`, complete or not at all."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a model folder; a foreign, damaged or newer one is one clear `UserError`."""


class Embedder(RelevanceModel):
    """A model whose score is the dot product of two embeddings, computed apart: it can be indexed."""

    @abstractmethod
    def embed(
        self,
        sequences: EventSequence | EventSequences | Iterable[EventSequence],
        role: Role = "corpus",
    ) -> Scores:
        """Unit vectors (sequences, dimension) float32; a query may be embedded differently from the corpus."""

    @property
    def score_is_cosine(self) -> bool:
        """Whether `score` is the dot product of the embeddings and nothing else."""
        return type(self).score is Embedder.score

    def score(
        self,
        queries: EventSequence | EventSequences | Iterable[EventSequence],
        candidates: EventSequences,
    ) -> Scores:
        scores = self.embed(queries, "query") @ self.embed(candidates, "corpus").T
        return scores[0] if isinstance(queries, EventSequence) else scores
