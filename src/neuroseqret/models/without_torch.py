r"""`self` for queries, without torch: importing torch takes longer than a search.

The same numbers as `SelfAttention.embed` up to rounding, with numpy, for models without a neural process, an unwarping
and a similarity term (preset `default`). Member m of the metric computes

.. math:: u_m = \mathrm{norm}(\mathrm{ReLU}(v_m A_m + a_m) B_m + b_m) \quad \text{or} \quad
          u_m = \mathrm{norm}(v_m A_m + a_m),

and the last one the probabilities of groups; see `self_attention.metric` and `self_attention.group_probabilities`.
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
from neuroseqret.models.fixed_features import Layout, fixed_features, fixed_sizes
from neuroseqret.models.model_folder import read_arrays
from neuroseqret.models.presets import SelfAttentionSettings, settings_of
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.training.task import TrainingTask

Array = npt.NDArray[np.float32]
_METRIC = "network.metric"
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
        bank, markov = self._named("bank"), self._named("markov")
        values = EventValues(self.settings.values, arrays.get("values"))
        self.bank = ConvolutionBank(scale, card.marks, bank, values) if bank else None
        self.markov = MarkovRenewal(scale, card.marks, markov) if markov else None
        self.layout = Layout(fixed_sizes(self.bank, self.markov))
        weights = arrays[f"{_METRIC}.weights"]
        self._shares: list[float] = (weights / weights.sum()).tolist()

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
        """Return embeddings of corpus sequences as those of queries (see `Metric.as_query`)."""
        if not (names := self._classifiers()):
            return embeddings
        length = self._kept(names) + 1
        probability = _unit(embeddings[:, -length:-1]) * np.float32(self._shares[self._group_member()] ** 0.5)
        return np.concatenate([embeddings[:, :-length], probability, np.zeros_like(embeddings[:, :1])], axis=1)

    def _embedded(self, sequences: EventSequences, role: Role) -> Array:
        vectors = fixed_features(self.bank, self.markov, sequences)
        assert vectors is not None  # `possible`: there is no neural process, so there is something else
        found, seen = [], {}
        for number, member in enumerate(self.settings.projection.members):
            if self._shares[number] <= 0 or member.kind == "groups":
                continue
            part = inner = vectors[:, self.layout.columns(member.sees)]
            if member.kind != "identity":
                inner = self._affine(number, "first", inner)
            if member.kind == "mlp":
                part = np.maximum(inner, 0)  # what the classifier of groups sees
                inner = self._affine(number, "second", part)
            seen[number] = part
            found.append(_unit(inner) * np.float32(self._shares[number] ** 0.5))
        if names := self._classifiers():
            share = np.float32(self._shares[self._group_member()] ** 0.5)
            found.append(self._probabilities({n: seen[n] for n in names}, role) * share)
        return np.concatenate(found, axis=1)

    def _affine(self, number: int, layer: str, x: Array) -> Array:
        place = f"{_METRIC}.projections.{number}.{layer}"
        result: Array = x @ self._arrays[place][0] + self._arrays[f"{place}_bias"][0]
        return result

    def _probabilities(self, seen: dict[int, Array], role: Role) -> Array:
        """Return the mean probabilities of the groups as unit vectors (see `GroupProbabilities.as_unit`)."""
        total = np.zeros((1, 1), np.float32)
        for number, x in seen.items():
            place = f"{_METRIC}.groups.classifiers.{number}"
            logits = x @ self._arrays[f"{place}.weight"].T + self._arrays[f"{place}.bias"]
            powers = np.exp(logits - logits.max(1, keepdims=True))
            total = total + powers / powers.sum(1, keepdims=True)
        mean: Array = total / np.float32(len(seen))
        if (directions := self._arrays.get(f"{_METRIC}.groups.directions")) is not None:
            mean = mean @ directions
        if role == "query":
            return np.pad(_unit(mean), ((0, 0), (0, 1)))
        rest = np.sqrt(np.maximum(1 - np.square(mean).sum(1, keepdims=True), 0))
        return np.concatenate([mean, rest], axis=1)

    def _classifiers(self) -> list[int]:
        """Return the members that a classifier of groups builds on; none if the model tells no probabilities."""
        begin, end = f"{_METRIC}.groups.classifiers.", ".weight"
        return sorted(int(n[len(begin) : -len(end)]) for n in self._arrays if n.startswith(begin) and n.endswith(end))

    def _kept(self, names: list[int]) -> int:
        """Return how many coordinates of an embedding hold probabilities."""
        directions = self._arrays.get(f"{_METRIC}.groups.directions")
        weight = self._arrays[f"{_METRIC}.groups.classifiers.{names[0]}.weight"]
        return len(weight) if directions is None else directions.shape[1]

    def _group_member(self) -> int:
        return next(n for n, member in enumerate(self.settings.projection.members) if member.kind == "groups")

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


def _unit(x: Array) -> Array:
    found: Array = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.float32(1e-12))
    return found
