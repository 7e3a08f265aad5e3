"""Settings of the second-stage models, and their presets: data, not branches in the model.

`default` corrects a trained first stage by a memory of relevant sets. `paper` is the paper's cross-attention process
to the letter of its equations; `paper-audio` ... `paper-amazon` have the values of its tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from neuroseqret.models.presets import PAPER_TABLE, chosen
from neuroseqret.training.loop import LoopSettings


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemorySettings(_Settings):
    """The second stage of `default`."""

    out_of_fold_steps: int = Field(default=1500, ge=0)  # at most; long vectors get fewer, as in the first stage
    most_queries: int = Field(default=1000, ge=1)  # train queries that weights are learned from
    depth: int = Field(default=100, ge=1)  # length of the lists that strengths are chosen on
    cells: int = Field(default=1 << 21, ge=1 << 10)  # numbers of one table, over all sets


class CrossProcessSettings(_Settings):
    """The second stage of `paper`."""

    width: int = Field(default=64, ge=4)
    positions: int = Field(default=512, ge=1)
    gamma: float = 0.1
    margin: float = Field(default=0.5, gt=0)
    likelihood: float = Field(default=0.1, ge=0)  # weight of the mean negative log-likelihood of an event
    sigma: float = Field(default=0.1, gt=0)  # of the unwarping
    queries: int = Field(default=16, ge=1)  # of a step
    positives: int = Field(default=2, ge=1)  # candidates of each query
    negatives: int = Field(default=6, ge=2)  # half of them from the first stage's list, half at random
    crop: int = Field(default=128, ge=2)  # most events of a sequence in training
    loop: LoopSettings = LoopSettings(steps=300, learning_rate=1e-3, weight_decay=1e-3, patience=3)


class CrossSettings(_Settings):
    """All of a second-stage model."""

    first_stage_preset: str = "default"  # preset of the SelfAttention that is fitted if none is given
    kind: Literal["memory", "process"] = "memory"
    memory: MemorySettings = MemorySettings()
    process: CrossProcessSettings = CrossProcessSettings()


def _paper(first_stage: str, gamma: float, margin: float, batch: int, width: int) -> CrossSettings:
    process = CrossProcessSettings(width=width, gamma=gamma, margin=margin, queries=batch // 2)
    return CrossSettings(first_stage_preset=first_stage, kind="process", process=process)


PRESETS: dict[str, CrossSettings] = {
    "default": CrossSettings(),
    "paper": _paper("paper", 0.1, 0.5, 32, 64),
    **{f"paper-{name}": _paper(f"paper-{name}", *row) for name, row in PAPER_TABLE.items()},
}


def cross_settings_of(preset: str, overrides: Mapping[str, Any]) -> CrossSettings:
    """A preset with some values replaced; nested settings take a mapping: `memory={"depth": 50}`."""
    return chosen(PRESETS, preset, overrides)
