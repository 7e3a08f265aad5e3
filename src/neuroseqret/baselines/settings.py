"""What the settings of all baselines share: unknown names are refused and nothing changes after construction."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class BaselineSettings(BaseModel):
    """Settings of a baseline; `cls(**settings)` makes the method again."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoSettings(BaselineSettings):
    """For methods that have nothing to set."""
