"""Golden settings: the defaults of every method, preset and hash function. A changed default is a changed figure.

The golden figures are of short trainings, so they cannot see a changed number of steps; the golden settings do.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from neuroseqret import methods
from neuroseqret.candidates import make_hash
from neuroseqret.models.cross.presets import PRESETS as CROSS_PRESETS
from neuroseqret.models.presets import PRESETS

Settings = dict[str, Any]

METHODS: dict[str, tuple[str, str]] = {
    **{f"self {preset}": ("self", preset) for preset in PRESETS},
    **{f"{name} {preset}": (name, preset) for name in ("cross", "hash-cross") for preset in CROSS_PRESETS},
    **{name: (name, "default") for name in methods.BASELINES},
}
HASHES: dict[str, tuple[str, dict[str, Any]]] = {
    "trees": ("trees", {}),
    "hyperplanes": ("hyperplanes", {}),
    "rotation": ("rotation", {}),
    "network": ("network", {}),
    "network paper": ("network", {"preset": "paper"}),
}


def method_settings(name: str) -> Settings:
    """Return the settings of a new method, nested ones with dots: `loop.steps`."""
    method, preset = METHODS[name]
    return _of(methods.make(method, preset))


def hash_settings(name: str) -> Settings:
    """Return the settings of a new hash function."""
    kind, options = HASHES[name]
    return _of(make_hash(kind, **options))


def _of(made: object) -> Settings:
    """Return the settings of a new object; attributes that are None wait for `fit`."""
    return _flat({name: value for name, value in vars(made).items() if value is not None})


def _flat(values: dict[str, Any], prefix: str = "") -> Settings:
    """Return numbers, texts and lists of them by name; anything else is state, not a setting."""
    found: Settings = {}
    for name, value in values.items():
        if isinstance(value, BaseModel):
            found |= _flat(dict(value), f"{prefix}{name}.")
        elif isinstance(value, tuple | list) and any(isinstance(item, BaseModel) for item in value):
            found |= _flat({f"{name}.{place}": item for place, item in enumerate(value)}, prefix)
        elif isinstance(value, tuple | list):
            found[prefix + name] = list(value)
        elif value is None or isinstance(value, bool | int | float | str):
            found[prefix + name] = value
    return found
