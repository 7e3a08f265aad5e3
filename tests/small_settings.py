"""Settings of a `self` model that is fitted in a second; tests replace what they are about."""

from __future__ import annotations

from typing import Any

SMALL: dict[str, Any] = {
    "encoder": {"width": 8, "max_length": 16},
    "batch": {"size": 8, "crop": 16},
    "warm_up": {"steps": 3},
    "joint": {"steps": 5},
    "head_batch": 32,
    "head": {"steps": 60, "evaluations": 1},
    "projection": {"hidden": 16, "dimension": 8},
    "vector": {"bank": 20},
    "selection": {"steps": 10},
}
