"""`self` for queries, without torch: importing torch takes longer than a search.

The same numbers as `SelfAttention.embed` up to rounding, for models without a neural process, an unwarping and a
similarity term (preset `default`): features that need no training, and `PlainMetric`.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.card import ModelCard, ModelState, Outcome
from neuroseqret.models.fixed_features import FixedFeatures, Layout
from neuroseqret.models.model_folder import read_arrays
from neuroseqret.models.plain_metric import PlainMetric
from neuroseqret.models.presets import SelfAttentionSettings, settings_of
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.processes.value_tables import ValueTables
from neuroseqret.training.task import TrainingTask

_CHUNK = 2048  # sequences whose vectors are held at once


class SelfWithoutTorch(Embedder):
    """A trained `self` model that embeds and nothing else; `load` reads the same model folder."""

    name: ClassVar[str] = "self"
    settings: SelfAttentionSettings

    def __init__(self, card: ModelCard, arrays: dict[str, npt.NDArray[Any]]) -> None:
        super().__init__(settings_of("default", card.settings), card.preset)
        if not possible(self.settings):
            raise ValueError("this model needs torch")
        self.card, self._arrays = card, arrays
        scale = TimeScale.model_validate(card.time_scale)
        bank, markov, tables = (self._named(part) for part in ("bank", "markov", "value_tables"))
        values = EventValues(self.settings.values, arrays.get("values"))
        self.fixed = FixedFeatures(
            ConvolutionBank(scale, card.marks, bank, values) if bank else None,
            MarkovRenewal(scale, card.marks, markov) if markov else None,
            ValueTables(scale, card.marks, values, tables) if tables else None,
        )
        layout = Layout(self.fixed.sizes)
        self.metric = PlainMetric(self._named("network.metric"), self.settings.projection, layout)

    @property
    def values(self) -> tuple[str, ...]:
        return self.settings.values

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        """Read a model folder; raise a `ValueError` or a `LookupError` if the model needs torch or is damaged."""
        return cls(*read_arrays(folder, cls.name))

    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Return unit vectors (sequences, dimension)."""
        found = [
            self._embedded(sequences[begin : begin + _CHUNK], role) for begin in range(0, len(sequences) or 1, _CHUNK)
        ]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def as_query(self, embeddings: Scores) -> Scores:
        return self.metric.as_query(embeddings)

    def _embedded(self, sequences: EventSequences, role: Role) -> Scores:
        vectors = self.fixed.of(sequences)
        assert vectors is not None  # `possible`: there is no neural process, so there is something else
        return self.metric(vectors, role)

    def _named(self, prefix: str) -> dict[str, npt.NDArray[Any]]:
        return {n[len(prefix) + 1 :]: array for n, array in self._arrays.items() if n.startswith(f"{prefix}.")}

    # ---------------------------------------------------------------- not here

    def learn(self, task: TrainingTask) -> Outcome:
        self._refuse()

    def to_state(self) -> ModelState:
        self._refuse()

    def restore(self, state: ModelState) -> None:
        self._refuse()

    @staticmethod
    def _refuse() -> NoReturn:
        raise UserError("this form of a model only embeds; load the model folder with neuroseqret.load")


def possible(settings: SelfAttentionSettings) -> bool:
    """Return whether a model with these settings can embed without torch."""
    fixed = settings.vector.markov or settings.vector.bank > 0
    plain = settings.unwarp is None and settings.similarity.form == "none"
    return fixed and plain and not settings.vector.neural
