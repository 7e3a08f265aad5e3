"""Settings of SelfAttention, and the presets: data, not branches in the model.

`default` is one recipe for all data. `paper` is the paper's model to the letter of its equations, with the values
that most of its data sets share; `paper-audio` ... `paper-amazon` have the values of its tables.
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
    max_length: int = Field(default=64, ge=8)  # events of one block; longer sequences are encoded in blocks


class VectorSettings(_Settings):
    """What the vector of a sequence is made of; each part whitened by the corpus."""

    # "all": gradients by every parameter of the point process, the reference; some ten times longer and slower
    fisher: Literal["heads", "all", "none"] = "heads"
    whitening: bool = True  # of the Fisher vector; False: the information I is taken as 1
    pooled: bool = True  # mean, sd and maximum of the states
    markov: bool = True  # the Markov-renewal process
    survival: bool = True  # the likelihood of nothing happening until the window's end


class ProjectionSettings(_Settings):
    """The learned metric on top."""

    kind: Literal["none", "linear", "mlp"] = "mlp"
    hidden: int = Field(default=384, ge=1)
    dimension: int = Field(default=64, ge=1)
    dropout: float = Field(default=0.4, ge=0, lt=1)
    members: int = Field(default=2, ge=1)


class SimilaritySettings(_Settings):
    """gamma * Sim, added to kappa."""

    form: Literal["none", "literal", "normalised"] = "none"
    gamma: float = 0.1
    terms: Literal["both", "times", "marks"] = "both"
    kernel: bool = True  # False: without kappa, the model-independent score alone


class UnwarpSettings(_Settings):
    """Unwarping of query times."""

    hidden: int = Field(default=128, ge=1)
    sigma: float = Field(default=0.1, gt=0)


class LossSettings(_Settings):
    kind: Literal["softmax", "hinge"] = "softmax"
    temperature: float = Field(default=0.1, gt=0)
    margin: float = Field(default=0.5, gt=0)
    likelihood: float = Field(default=0.1, ge=0)  # weight of the mean negative log-likelihood of an event
    proxies: float = Field(default=0.5, ge=0, le=1)  # of the second phase: share of the loss against groups' proxies


class BatchSettings(_Settings):
    """Anchors of a training step, and how their sequences are varied."""

    size: int = Field(default=64, ge=2)
    pseudo_share: float = Field(default=0.5, ge=0, le=1)
    pseudo_from: Literal["train", "corpus"] = "corpus"
    crop: int = Field(default=64, ge=2)  # most events of a training sequence


class SelfAttentionSettings(_Settings):
    """All of a SelfAttention model."""

    encoder: EncoderSettings = EncoderSettings()
    vector: VectorSettings = VectorSettings()
    projection: ProjectionSettings = ProjectionSettings()
    similarity: SimilaritySettings = SimilaritySettings()
    unwarp: UnwarpSettings | None = None
    loss: LossSettings = LossSettings()
    batch: BatchSettings = BatchSettings()
    warm_up: LoopSettings = LoopSettings(steps=60)
    joint: LoopSettings = LoopSettings(steps=400)
    joint_epochs: float = Field(
        default=10.0, gt=0
    )  # few sequences get fewer joint steps: the encoder learns them by heart
    head_batch: int = Field(default=128, ge=2)  # anchors of a step of the second phase
    head: LoopSettings | None = LoopSettings(steps=4000, learning_rate=2e-3, weight_decay=1e-3)  # None: no second phase
    head_work: float = Field(default=6e11, gt=0)  # multiply-adds of its forward passes: long vectors get fewer steps


DEFAULT = SelfAttentionSettings()

#: The table of the paper: gamma, delta (margin), batch size, D.
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
    """A preset with some values replaced; nested settings take a mapping: `encoder={"width": 64}`."""
    return chosen(PRESETS, preset, overrides)


def chosen(presets: Mapping[str, S], preset: str, overrides: Mapping[str, Any]) -> S:
    """One of the presets with some values replaced; whatever is wrong with either is one clear line."""
    if preset not in presets:
        raise UserError(f"no preset is called {preset!r}; there are {', '.join(presets)}")
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
