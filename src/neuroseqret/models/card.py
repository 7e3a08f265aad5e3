"""The model card: what a trained method is and what its numbers mean, with the same fields for every method.

A trained method is a `ModelState`: its card and its tensors. `to_state` and `from_state` of a method convert to and
from it; `model_folder` writes and reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from neuroseqret.data.meaning import Meaning
from neuroseqret.processes.time_scale import TimeScale


class ModelCard(BaseModel):
    """Everything about a trained method but its tensors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str  # the method's name
    method_version: int = Field(ge=1)
    preset: str | None = None  # None for methods without presets
    settings: dict[str, Any] = {}  # all of them, so that a changed default does not change a saved model

    marks: int = Field(ge=1)  # how many are known
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    time_scale: TimeScale | None = None  # None for methods that have none
    constants: dict[str, float] = {}  # further numbers that scores depend on, such as strengths

    seed: int
    unlabelled: bool = False  # learned from sub-sequences of the corpus
    train_queries: int = Field(default=0, ge=0)
    corpus_fingerprint: str
    validation: dict[str, float] = {}  # measures on the validation queries, empty without any
    notes: dict[str, Any] = {}  # how choices were made; no score depends on it

    first_stage: ModelCard | None = None  # of a second stage

    @property
    def meaning(self) -> Meaning:
        """What marks and times mean to the method."""
        return Meaning(self.marks, self.mark_names, self.time_unit)


@dataclass(frozen=True)
class ModelState:
    """A trained method as data."""

    card: ModelCard
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True)
class Outcome:
    """What learning came to: measures on the validation queries, and how choices were made."""

    validation: dict[str, float]
    notes: dict[str, Any]

    @classmethod
    def of(cls, measure: str, best: float | None, **notes: Any) -> Outcome:
        """One measure, or none without validation queries."""
        return cls({} if best is None else {measure: best}, notes)


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix.`, without it."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors with `prefix.` before their names; the inverse of `under`."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}
