"""The settings of SelfAttention and its presets. A preset is data; the model has no branches on its name.

`default` is one recipe for all data; `neural` adds the neural process to it. `paper` is the model of the paper, in a
reading without units, and `paper-literal` has its sums to the letter; both have the values that most of its data sets
share, and `paper-audio` ... `paper-amazon` and `paper-literal-audio` ... those of its table for each data set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from neuroseqret.errors import UserError
from neuroseqret.training.loop_settings import LoopSettings

S = TypeVar("S", bound=BaseModel)


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EncoderSettings(_Settings):
    """Self-attention over events."""

    reads: Literal["gaps", "times"] = "gaps"  # "times": the encoder of the Transformer Hawkes Process
    width: int = Field(default=32, ge=4)
    blocks: int = Field(default=2, ge=1)
    heads: int = Field(default=1, ge=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_length: int = Field(default=64, ge=8)  # events per block; longer sequences are encoded in blocks


class VectorSettings(_Settings):
    """The parts of the vector of a sequence; each part is whitened over the corpus."""

    markov: bool = True  # features of the Markov-renewal process
    bank: int = Field(default=384, ge=0)  # kernels of the convolution bank; 0: none
    # Fisher vector of the neural process. "all": by every parameter of it, about ten times as long and slow
    fisher: Literal["heads", "all", "none"] = "none"
    pooled: bool = False  # mean, sd and maximum of the states of the neural process
    whitening: bool = True  # of the Fisher vector; False: the information I is 1
    survival: bool = True  # likelihood that nothing happens until the end of the window

    @property
    def neural(self) -> bool:
        """Whether the vector needs the neural process."""
        return self.fisher != "none" or self.pooled


#: The parts of the vector that a member of the metric can see, in the order of the vector.
Part = Literal["positions", "bank", "markov", "process"]
PARTS: tuple[Part, ...] = ("positions", "bank", "markov", "process")


class MemberSettings(_Settings):
    """One part of the embedding: what it sees of the vector and how it learns.

    `identity` is the vector itself, `linear` one matrix, `mlp` a matrix, ReLU and a matrix; these two are trained.
    `discriminant` and `whitened` are matrices in closed form, from the labels and from the vectors alone. `groups` is
    the probability of every known group, as the `mlp` members and the discriminant tell it (see `group_probabilities`).
    """

    kind: Literal["identity", "linear", "mlp", "discriminant", "whitened", "groups"] = "mlp"
    sees: tuple[Part, ...] = PARTS  # neighbours in `PARTS`; parts that the vector does not have are left out
    crops: bool = False  # train on random crops of the sequences as well
    weight: float = Field(default=1.0, ge=0)  # of its cosine in the score, unless `fit` finds a better one
    directions: int = Field(default=128, ge=1)  # most principal directions of a `whitened` member

    @property
    def trained(self) -> bool:
        """Whether it is trained step by step."""
        return self.kind in ("linear", "mlp")

    @property
    def stands_alone(self) -> bool:
        """Whether it is used alone or not at all: with few sequences, unless a learned metric is clearly better."""
        return self.kind == "identity" and not self.weight


class ProjectionSettings(_Settings):
    """The learned metric on top of the vector: its members, and the sizes that they share."""

    members: tuple[MemberSettings, ...] = (
        MemberSettings(sees=("bank", "markov"), weight=2),
        MemberSettings(sees=("bank", "markov"), weight=2, crops=True),
        MemberSettings(sees=("positions", "bank", "markov"), weight=2),
        MemberSettings(kind="discriminant", sees=("bank", "markov"), weight=1),
        MemberSettings(kind="whitened", sees=("markov",), weight=0),
        MemberSettings(kind="groups", weight=5),
        MemberSettings(kind="whitened", sees=("markov",), directions=512, weight=0),  # nearly all of the histograms
        MemberSettings(kind="identity", sees=("markov",), weight=0),  # all of them; used alone or not at all
    )
    hidden: int = Field(default=256, ge=1)
    dimension: int = Field(default=48, ge=1)
    dropout: float = Field(default=0.4, ge=0, lt=1)
    ridge: float = Field(default=3.0, gt=0)  # of the discriminant, as a multiple of the mean variance

    def possible(self, weights: Sequence[float] | npt.NDArray[np.float64]) -> bool:
        """Return whether members can be mixed with these weights.

        Probabilities of groups need a member that computes them. A member that stands alone is not mixed.
        """
        used = [member for member, weight in zip(self.members, weights, strict=True) if weight > 0]
        kinds = {member.kind for member in used}
        return ("groups" not in kinds or bool(kinds & {"mlp", "discriminant"})) and not any(
            member.stands_alone for member in used
        )

    @property
    def learned(self) -> bool:
        """Whether there is a metric at all."""
        return any(member.kind != "identity" for member in self.members)


class SelectionSettings(_Settings):
    """How `fit` chooses the weights of the members: on sources of the corpus that a first, shorter fit does not see."""

    steps: int = Field(default=300, ge=1)
    held_out: float = Field(default=0.3, gt=0, lt=1)  # share of the sources and of the train queries


class SimilaritySettings(_Settings):
    """The term gamma * Sim, which is added to kappa."""

    form: Literal["none", "literal", "normalised", "horizon"] = "none"
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
    over: Literal["active", "all"] = "active"  # pairs that the hinge is averaged over
    likelihood: float = Field(default=0.1, ge=0)  # weight of the negative log-likelihood per event
    proxies: float = Field(default=0.5, ge=0, le=1)  # in the head phase: share of the loss against proxies of groups


class BatchSettings(_Settings):
    """The anchors of a training step, and the crop of their sequences."""

    size: int = Field(default=64, ge=2)
    pseudo_share: float = Field(default=0.5, ge=0, le=1)
    pseudo_from: Literal["train", "corpus"] = "corpus"
    crop: int = Field(default=64, ge=2)  # most events of a training sequence
    negatives: int = Field(default=0, ge=0)  # candidates drawn for each query, besides those of its batch


class SelfAttentionSettings(_Settings):
    """All settings of a SelfAttention model."""

    values: tuple[str, ...] = ()  # columns with one number per event that the model learns from
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
    head: LoopSettings | None = LoopSettings(steps=2000, learning_rate=2e-3, weight_decay=1e-3, evaluations=1)
    selection: SelectionSettings | None = SelectionSettings()  # None: the weights of the members are as given

    @model_validator(mode="after")
    def _something_is_trained(self) -> SelfAttentionSettings:
        if self.head is None and not self.vector.neural:
            raise ValueError("without a neural process (vector.fisher, vector.pooled) there must be a head phase")
        if self.values and not (self.vector.bank or self.vector.markov):
            raise ValueError("this preset reads times and marks only; leave out the values, or use preset 'default'")
        return self


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
    """Return the paper's model, read so that it has no units, trained until validation stops rising."""
    return SelfAttentionSettings(
        encoder=EncoderSettings(reads="times", width=width, blocks=2, heads=1, dropout=0.2, max_length=256),
        vector=VectorSettings(fisher="heads", pooled=False, markov=False, bank=0, survival=False),
        projection=ProjectionSettings(members=(MemberSettings(kind="identity"),)),
        similarity=SimilaritySettings(form="horizon", gamma=gamma),
        unwarp=UnwarpSettings(hidden=128),
        loss=LossSettings(kind="hinge", margin=margin, over="all"),
        batch=BatchSettings(size=batch, pseudo_share=0.5, crop=256, negatives=100),
        warm_up=LoopSettings(steps=300),
        joint=LoopSettings(steps=None, learning_rate=3e-3, weight_decay=1e-3, patience=6, drops=2),
        head=None,
        selection=None,
    )


def _literal(gamma: float, margin: float, batch: int, width: int) -> SelfAttentionSettings:
    """Return the paper's model with its sums to the letter, which have units, after a fixed number of steps."""
    return SelfAttentionSettings(
        encoder=EncoderSettings(width=width, blocks=2, heads=1, dropout=0.2),
        vector=VectorSettings(fisher="heads", pooled=False, markov=False, bank=0, survival=False),
        projection=ProjectionSettings(members=(MemberSettings(kind="identity"),), hidden=384, dimension=64),
        similarity=SimilaritySettings(form="literal", gamma=gamma),
        unwarp=UnwarpSettings(hidden=128),
        loss=LossSettings(kind="hinge", margin=margin),
        batch=BatchSettings(size=batch, pseudo_share=0.0),
        warm_up=LoopSettings(steps=0),
        joint=LoopSettings(steps=600, learning_rate=1e-3, weight_decay=1e-3),
        joint_epochs=1000.0,
        head=None,
        selection=None,
    )


#: `default` and the neural process, which the first member sees; several times slower.
NEURAL = SelfAttentionSettings(
    vector=VectorSettings(fisher="heads", pooled=True),
    projection=ProjectionSettings(
        members=(
            MemberSettings(sees=("bank", "markov", "process"), weight=2),
            *DEFAULT.projection.members[1:],
        )
    ),
)

PRESETS: dict[str, SelfAttentionSettings] = {
    "default": DEFAULT,
    "neural": NEURAL,
    "paper": _paper(0.1, 0.5, 32, 64),
    **{f"paper-{name}": _paper(*row) for name, row in PAPER_TABLE.items()},
    "paper-literal": _literal(0.1, 0.5, 32, 64),
    **{f"paper-literal-{name}": _literal(*row) for name, row in PAPER_TABLE.items()},
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
