"""Chance: a random score for every pair, so that every table shows what knowing nothing gives."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.measures.ties import id_keys, pair_keys
from neuroseqret.models.base import RelevanceModel, Scores
from neuroseqret.models.model_folder import read_model, write_model


class Random(RelevanceModel):
    """Scores uniform in [0, 1), a hash of (seed, query id, candidate id): the same pair always scores the same."""

    name: ClassVar[str] = "random"

    def __init__(self) -> None:
        self.seed = 0

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
        """Nothing is learned; the seed decides the scores."""
        self.seed = seed
        return self

    def score(
        self, queries: EventSequence | EventSequences | Iterable[EventSequence], candidates: EventSequences
    ) -> Scores:
        # Another hash than the one that breaks ties, so that the two orders have nothing to do with each other.
        salt = self.seed + (1 << 32)
        keys = pair_keys(id_keys(EventSequences.of(queries).ids, salt), id_keys(candidates.ids, salt))
        scores = ((keys >> np.uint64(40)).astype(np.float64) / 2**24).astype(np.float32)
        return scores[0] if isinstance(queries, EventSequence) else scores

    def save(self, folder: str | PathLike[str]) -> Path:
        return write_model(folder, self.name, {"seed": self.seed}, {})

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, _ = read_model(folder, cls.name)
        made = cls()
        made.seed = int(config["seed"])
        return made
