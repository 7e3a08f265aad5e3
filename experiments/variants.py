"""Variants of the self-attention model that the ablation compares, by name: a preset and the settings it replaces."""

from __future__ import annotations

from typing import Any

from experiments.plan import Fit
from neuroseqret.models.presets import DEFAULT, PAPER_TABLE
from neuroseqret.models.self_attention.model import SelfAttention

Variant = tuple[str, dict[str, Any]]
_MEMBERS = [member.model_dump() for member in DEFAULT.projection.members]


def _without(kind: str) -> dict[str, Any]:
    return {"projection": {"members": [member for member in _MEMBERS if member["kind"] != kind]}}


#: `default` with one part left out, or with one part put in that it does not have.
DEFAULT_VARIANTS: dict[str, Variant] = {
    "default": ("default", {}),
    "no-bank": ("default", {"vector": {"bank": 0}}),
    "no-markov": ("default", {"vector": {"markov": False}}),
    "neural": ("neural", {}),
    "no-groups": ("default", _without("groups")),
    "no-discriminant": ("default", _without("discriminant")),
    "no-crops": ("default", {"projection": {"members": [m | {"crops": False} for m in _MEMBERS]}}),
    "one-member": ("default", {"projection": {"members": _MEMBERS[:1]}, "selection": None}),
    "no-selection": ("default", {"selection": None}),
    "whitened-only": ("default", {"projection": {"members": [{"kind": "whitened"}]}, "selection": None}),
    "similarity": ("default", {"similarity": {"form": "normalised"}}),
    "unwarping": ("neural", {"unwarp": {}}),
    "hinge-loss": ("default", {"loss": {"kind": "hinge"}}),
    "pseudo-train": ("default", {"batch": {"pseudo_from": "train"}}),
}

#: The six scores of the paper's ablation, in the paper's order; the last is the whole model.
PAPER_VARIANTS: dict[str, Variant] = {
    "paper-similarity-only": ("paper", {"similarity": {"kernel": False, "gamma": 1.0}}),
    "paper-kernel-only": ("paper", {"similarity": {"form": "none"}}),
    "paper-no-times": ("paper", {"similarity": {"terms": "marks"}}),
    "paper-no-marks": ("paper", {"similarity": {"terms": "times"}}),
    "paper-no-unwarping": ("paper", {"unwarp": None}),
    "paper": ("paper", {}),
}

VARIANTS: dict[str, Variant] = DEFAULT_VARIANTS | PAPER_VARIANTS


def variant(name: str, data: str = "") -> SelfAttention:
    """Return an untrained model; a variant of `paper` takes the values of the paper's table for that data set."""
    preset, overrides = VARIANTS[name]
    if preset == "paper" and data in PAPER_TABLE:
        preset = f"paper-{data}"
    return SelfAttention(preset, **overrides)


def variant_fit(data: str, name: str, seed: int = 0) -> Fit:
    """Return the fit of a variant of SelfAttention; the whole models are rows of the accuracy table."""
    preset = VARIANTS[name][0] if name in PAPER_VARIANTS else "default"
    return Fit(data=data, method="self", preset=preset, variant="" if name == preset else name, seed=seed)
