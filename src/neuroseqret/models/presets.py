"""The settings of SelfAttention and its presets. A preset is data; the model has no branches on its name.

`default` is one recipe for all data. `paper` is the model of the paper, equation by equation, with the values that most
of its data sets share. `paper-audio` ... `paper-amazon` have the values of its table for each data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from neuroseqret.errors import UserError
from neuroseqret.training.loop import LoopSettings

S = TypeVar("S", bound=BaseModel)


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EncoderSettings(_Settings):
    """Self-attention over events."""

    width: int = Field(default=32, ge=4)
    blocks: int = Field(default=2, ge=1)
    heads: int = Field(default=1, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_length: int = Field(default=64, ge=8)  # events per block; longer sequences are encoded in blocks


class VectorSettings(_Settings):
    """The parts of the vector of a sequence; each part is whitened over the corpus."""

    # "all": gradients by every parameter of the point process, about ten times as long and slow
    fisher: Literal["heads", "all", "none"] = "heads"
    whitening: bool = True  # of the Fisher vector; False: the information I is 1
    pooled: bool = True  # mean, sd and maximum of the states
    markov: bool = True  # features of the Markov-renewal process
    survival: bool = True  # likelihood that nothing happens until the end of the window


class ProjectionSettings(_Settings):
    """The learned metric on top of the vector."""

    kind: Literal["none", "linear", "mlp"] = "mlp"
    hidden: int = Field(default=384, ge=1)
    dimension: int = Field(default=64, ge=1)
    dropout: float = Field(default=0.4, ge=0, lt=1)
    members: int = Field(default=2, ge=1)


class SimilaritySettings(_Settings):
    """The term gamma * Sim, which is added to kappa."""

    form: Literal["none", "literal", "normalised"] = "none"
    gamma: float = 0.1
    terms: Literal["both", "times", "marks"] = "both"
    kernel: bool = True  # False: without kappa, only the model-independent score


class UnwarpSettings(_Settings):
    """Unwarping of query times."""

    hidden: int = Field(default=128, ge=1)
    sigma: float = Field(default=0.1, gt=0)


class LossSettings(_Settings):
    """The ranking loss and the terms added to it."""

    kind: Literal["softmax", "hinge"] = "softmax"
    temperature: float = Field(default=0.1, gt=0)
    margin: float = Field(default=0.5, gt=0)
    likelihood: float = Field(default=0.1, ge=0)  # weight of the negative log-likelihood per event
    proxies: float = Field(default=0.5, ge=0, le=1)  # in the head phase: share of the loss against proxies of groups


class BatchSettings(_Settings):
    """The anchors of a training step, and the crop of their sequences."""

    size: int = Field(default=64, ge=2)
    pseudo_share: float = Field(default=0.5, ge=0, le=1)
    pseudo_from: Literal["train", "corpus"] = "corpus"
    crop: int = Field(default=64, ge=2)  # most events of a training sequence


class SelfAttentionSettings(_Settings):
    """All settings of a SelfAttention model."""

    encoder: EncoderSettings = EncoderSettings()
    vector: VectorSettings = VectorSettings()
    projection: ProjectionSettings = ProjectionSettings()
    similarity: SimilaritySettings = SimilaritySettings()
    unwarp: UnwarpSettings | None = None
    loss: LossSettings = LossSettings()
    batch: BatchSettings = BatchSettings()
    warm_up: LoopSettings = LoopSettings(steps=60)
    joint: LoopSettings = LoopSettings(steps=400)
    joint_epochs: float = Field(default=10.0, gt=0)  # limits the joint steps: the encoder overfits few sequences
    head_batch: int = Field(default=128, ge=2)  # anchors of a step of the head phase
    head: LoopSettings | None = LoopSettings(steps=4000, learning_rate=2e-3, weight_decay=1e-3)  # None: no head phase
    head_work: float = Field(default=6e11, gt=0)  # multiply-adds of all its forward passes: limits the steps


DEFAULT = SelfAttentionSettings()

#: The paper's table of hyperparameters: gamma, delta (margin), batch size, D.
PAPER_TABLE: dict[str, tuple[float, float, int, int]] = {
    "audio": (0.1, 0.5, 32, 64),
    "celebrity": (0.1, 0.5, 32, 64),
    "electricity": (0.5, 0.1, 32, 48),
    "health": (0.1, 0.1, 16, 32),
    "sports": (0.1, 0.5, 16, 32),
    "twitter": (0.1, 0.5, 32, 64),
    "amazon": (0.1, 0.5, 32, 64),
}


def _paper(gamma: float, margin: float, batch: int, width: int) -> SelfAttentionSettings:
    return SelfAttentionSettings(
        encoder=EncoderSettings(width=width, blocks=2, heads=1, dropout=0.2),
        vector=VectorSettings(fisher="heads", pooled=False, markov=False, survival=False),
        projection=ProjectionSettings(kind="none"),
        similarity=SimilaritySettings(form="literal", gamma=gamma),
        unwarp=UnwarpSettings(hidden=128),
        loss=LossSettings(kind="hinge", margin=margin),
        batch=BatchSettings(size=batch, pseudo_share=0.0),
        warm_up=LoopSettings(steps=0),
        joint=LoopSettings(steps=600, learning_rate=1e-3, weight_decay=1e-3),
        joint_epochs=1000.0,
        head=None,
    )


PRESETS: dict[str, SelfAttentionSettings] = {
    "default": DEFAULT,
    "paper": _paper(0.1, 0.5, 32, 64),
    **{f"paper-{name}": _paper(*row) for name, row in PAPER_TABLE.items()},
}


def settings_of(preset: str, overrides: Mapping[str, Any]) -> SelfAttentionSettings:
    """Return a preset with some values replaced; nested settings take a mapping: `encoder={"width": 64}`."""
    return resolve_preset(PRESETS, preset, overrides)


def resolve_preset(presets: Mapping[str, S], preset: str, overrides: Mapping[str, Any]) -> S:
    """Return one of the presets with some values replaced; raise a `UserError` if name or values are wrong."""
    if preset not in presets:
        raise UserError(f"no preset is called {preset!r}; choose one of {', '.join(presets)}")
    base = presets[preset]
    try:
        return type(base).model_validate(_merge(base.model_dump(), overrides))
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"setting {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error


def _merge(values: dict[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    for key, new in overrides.items():
        old = values.get(key)
        values[key] = _merge(dict(old), new) if isinstance(old, dict) and isinstance(new, Mapping) else new
    return values
