"""The model card: what a trained method is and what its numbers mean, with the same fields for every method.

A trained method is a `ModelState`: its card and its tensors. The methods convert to and from it (`to_state`,
`from_state`); `model_folder` writes and reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from neuroseqret.data.meaning import Meaning
from neuroseqret.processes.time_scale import TimeScale

if TYPE_CHECKING:
    from torch import Tensor


class ModelCard(BaseModel):
    """Everything about a trained method except its tensors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str  # name of the method
    method_version: int = Field(ge=1)
    preset: str | None = None  # None for methods without presets
    settings: dict[str, Any] = {}  # all of them, so that a new default does not change a saved model

    marks: int = Field(ge=1)  # number of known marks
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    typical_gaps: tuple[float, float, float] | None = None  # see `data.gaps`; early models do not have it
    time_scale: TimeScale | None = None  # None for methods that have none
    columns: dict[str, str | None] | None = None  # of the raw files, as told to `data prepare`; None: not known
    time_format: str | None = None  # of the dates in these files
    constants: dict[str, float] = {}  # other numbers that scores depend on, such as strengths

    seed: int
    max_seconds: float | None = None  # the time limit of the training; None: there was none
    unlabelled: bool = False  # learned from sub-sequences of the corpus
    train_queries: int = Field(default=0, ge=0)
    corpus_fingerprint: str
    learned_from: str | None = None  # a sketch of all sequences (see `data.sketch`); early models do not have it
    validation: dict[str, float] = {}  # measures on the validation queries; empty if there are none
    notes: dict[str, Any] = {}  # how choices were made; scores do not depend on it

    first_stage: ModelCard | None = None  # card of the first stage, if this is a second stage

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
    """What `learn` reports: measures on the validation queries, and notes on how choices were made."""

    validation: dict[str, float]
    notes: dict[str, Any]

    @classmethod
    def of(cls, measure: str, best: float | None, **notes: Any) -> Outcome:
        """Return an outcome with one measure, or without any if `best` is None."""
        return cls({} if best is None else {measure: best}, notes)


def under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with `prefix.`, with the prefix removed."""
    return {name[len(prefix) + 1 :]: tensor for name, tensor in tensors.items() if name.startswith(f"{prefix}.")}


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with `prefix.` added to their names; the inverse of `under`."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}
