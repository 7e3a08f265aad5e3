"""The settings of the training loop, apart from it: presets and saved models are read without importing torch."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class LoopSettings(BaseModel):
    """How long and how fast a phase learns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int | None = Field(default=400, ge=0)  # None: until `patience` and `drops` or the budget end it
    learning_rate: float = Field(default=3e-3, gt=0)
    weight_decay: float = Field(default=1e-4, ge=0)
    clip: float = Field(default=1.0, gt=0)  # largest norm of the gradient
    warmup: float = Field(default=0.05, ge=0, le=1)  # share of the phase over which the rate rises from 0
    evaluations: int = Field(default=5, ge=1)  # number of validations, spread evenly over the phase
    every: int = Field(default=50, ge=1)  # steps between validations if `steps` is None
    patience: int | None = Field(default=None, ge=1)  # stop after this many evaluations without a new best; None: never
    drops: int = Field(default=0, ge=0)  # how often patience ends in a lower rate and the best weights, not in a stop
    max_seconds: float | None = Field(default=None, gt=0)  # wall clock; the schedule shrinks to fit it

    @model_validator(mode="after")
    def _it_ends(self) -> LoopSettings:
        if self.steps is None and self.patience is None:
            raise ValueError("without a number of steps there must be a patience")
        return self
