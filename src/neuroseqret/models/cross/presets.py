"""The settings of the second stages and their presets. A preset is data; the models have no branches on its name.

`default` corrects a trained first stage by a memory of relevant sets. `paper` is the cross-attention process of the
paper, in a reading without units, and `paper-literal` has its sums to the letter. `paper-audio` ... and
`paper-literal-audio` ... have the values of its table for each data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from neuroseqret.models.presets import PAPER_TABLE, resolve_preset
from neuroseqret.training.loop_settings import LoopSettings


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MemorySettings(_Settings):
    """The correction of kind `memory`, used by `default`."""

    out_of_fold_steps: int = Field(default=1500, ge=0)  # at most; long vectors get fewer, as in the first stage
    most_queries: int = Field(default=1000, ge=1)  # most train queries that weights are learned from
    depth: int = Field(default=100, ge=1)  # length of the lists that strengths are chosen on
    cells: int = Field(default=1 << 21, ge=1 << 10)  # most cells of one table, over all sets


class CrossProcessSettings(_Settings):
    """The correction of kind `process`, used by `paper` and `paper-literal`."""

    width: int = Field(default=64, ge=4)
    positions: int = Field(default=512, ge=1)
    blocks: int = Field(default=1, ge=1)  # of attention
    dropout: float = Field(default=0.0, ge=0, lt=1)  # after each block
    clock: Literal["gaps", "horizon"] = "gaps"  # unit of an event's time as input; its gap is in typical gaps
    form: Literal["literal", "horizon"] = "literal"  # of the similarity, see `processes.similarity`
    pairs: Literal["sum", "mean"] = "sum"  # of the divergence, over all pairs of events
    candidates: Literal["first", "own"] = "first"  # whose embedding finds what `hash-cross` reranks
    gamma: float = 0.1
    margin: float = Field(default=0.5, gt=0)
    over: Literal["active", "all"] = "active"  # pairs that the hinge is averaged over
    likelihood: float = Field(default=0.1, ge=0)  # weight of the negative log-likelihood per event
    unwarp: bool = True  # the times of queries
    sigma: float = Field(default=0.1, gt=0)  # of the unwarping
    queries: int = Field(default=16, ge=1)  # anchors per step
    pseudo_share: float = Field(default=0.0, ge=0, le=1)  # of the anchors: corpus sequences, without `hard`
    positives: int = Field(default=2, ge=1)  # per query
    negatives: int = Field(default=6, ge=2)  # per query
    hard: bool = True  # half of the negatives are from the first stage's list; False: all are random
    crop: int | None = Field(default=128, ge=2)  # most events of a training sequence; None: no limit of its own
    loop: LoopSettings = LoopSettings(steps=300, learning_rate=1e-3, weight_decay=1e-3, patience=3)


class CrossSettings(_Settings):
    """All settings of a second stage."""

    first_stage_preset: str = "default"  # preset of the SelfAttention that is trained if none is given
    kind: Literal["memory", "process"] = "memory"  # which correction
    memory: MemorySettings = MemorySettings()
    process: CrossProcessSettings = CrossProcessSettings()


def _paper(first_stage: str, gamma: float, margin: float, batch: int, width: int) -> CrossSettings:
    """Return the paper's model, read so that it has no units, trained until validation stops rising."""
    process = CrossProcessSettings(
        width=width,
        blocks=2,
        dropout=0.2,
        clock="horizon",
        form="horizon",
        pairs="mean",
        candidates="own",
        gamma=gamma,
        margin=margin,
        over="all",
        queries=batch // 8,  # with a hundred negatives each
        positives=1,
        negatives=100,
        hard=False,
        pseudo_share=0.5,
        crop=None,
        loop=LoopSettings(steps=None, every=25, learning_rate=1e-3, weight_decay=1e-3, patience=6, drops=2),
    )
    return CrossSettings(first_stage_preset=first_stage, kind="process", process=process)


def _literal(first_stage: str, gamma: float, margin: float, batch: int, width: int) -> CrossSettings:
    """Return the paper's model with its sums to the letter, which have units, after a fixed number of steps."""
    process = CrossProcessSettings(width=width, gamma=gamma, margin=margin, queries=batch // 2)
    return CrossSettings(first_stage_preset=first_stage, kind="process", process=process)


PRESETS: dict[str, CrossSettings] = {
    "default": CrossSettings(),
    "paper": _paper("paper", 0.1, 0.5, 32, 64),
    **{f"paper-{name}": _paper(f"paper-{name}", *row) for name, row in PAPER_TABLE.items()},
    "paper-literal": _literal("paper-literal", 0.1, 0.5, 32, 64),
    **{f"paper-literal-{name}": _literal(f"paper-literal-{name}", *row) for name, row in PAPER_TABLE.items()},
}


def cross_settings_of(preset: str, overrides: Mapping[str, Any]) -> CrossSettings:
    """Return a preset with some values replaced; nested settings take a mapping: `memory={"depth": 50}`."""
    return resolve_preset(PRESETS, preset, overrides)
