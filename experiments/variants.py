"""Variants of the self-attention model that the ablation compares, by name: a preset and the settings it replaces."""

from __future__ import annotations

from typing import Any

from experiments.plan import Fit
from neuroseqret.models.presets import DEFAULT, PRESETS
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
    "paper-literal-similarity-only": ("paper-literal", {"similarity": {"kernel": False, "gamma": 1.0}}),
    "paper-literal-kernel-only": ("paper-literal", {"similarity": {"form": "none"}}),
    "paper-literal-no-times": ("paper-literal", {"similarity": {"terms": "marks"}}),
    "paper-literal-no-marks": ("paper-literal", {"similarity": {"terms": "times"}}),
    "paper-literal-no-unwarping": ("paper-literal", {"unwarp": None}),
    "paper-literal": ("paper-literal", {}),
}

VARIANTS: dict[str, Variant] = DEFAULT_VARIANTS | PAPER_VARIANTS


def variant(name: str, data: str = "") -> SelfAttention:
    """Return an untrained model; `data` is the data set that it is for, see `preset_for`."""
    preset, overrides = VARIANTS[name]
    return SelfAttention(preset_for(preset, data), **overrides)


def preset_for(preset: str, data: str) -> str:
    """Return the preset with the values of the paper's table for that data set, if there is one."""
    own = f"{preset}-{data}"
    return own if own in PRESETS else preset


def variant_fit(data: str, name: str, seed: int = 0) -> Fit:
    """Return the fit of a variant of SelfAttention; the whole models are rows of the accuracy table."""
    preset = VARIANTS[name][0] if name in PAPER_VARIANTS else "default"
    return Fit(data=data, method="self", preset=preset, variant="" if name == preset else name, seed=seed)
