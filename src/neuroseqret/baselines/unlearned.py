"""Methods that learn nothing: their model folder holds the card and no tensors."""

from __future__ import annotations

from typing import ClassVar

from neuroseqret.models.base import RelevanceModel
from neuroseqret.models.card import ModelState, Outcome
from neuroseqret.training.task import TrainingTask


class Unlearned(RelevanceModel):
    """A method that is complete without training; `fit` only records the seed, the corpus and what its marks mean."""

    needs_labels: ClassVar[bool] = False

    def learn(self, task: TrainingTask) -> Outcome:
        """Nothing to learn."""
        return Outcome({}, {})

    def to_state(self) -> ModelState:
        return ModelState(self.trained_card(), {})

    def restore(self, state: ModelState) -> None:
        """Nothing to restore: settings and card say everything."""
