"""Chance: a random score for every pair, so that every table shows what a method without knowledge reaches."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequences
from neuroseqret.measures.ties import id_keys, pair_keys
from neuroseqret.models.base import Scores


class Random(Unlearned):
    """Random scores in [0, 1), the same every time for the same pair of ids."""

    name: ClassVar[str] = "random"

    def __init__(self) -> None:
        super().__init__(NoSettings())

    @property
    def seed(self) -> int:
        """The seed of `fit`, which decides all scores; 0 before."""
        return 0 if self.card is None else self.card.seed

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        # A different hash from the one that breaks ties, so that the two orders are independent.
        salt = self.seed + (1 << 32)
        keys = pair_keys(id_keys(queries.ids, salt), id_keys(candidates.ids, salt))
        return ((keys >> np.uint64(40)).astype(np.float64) / 2**24).astype(np.float32)
