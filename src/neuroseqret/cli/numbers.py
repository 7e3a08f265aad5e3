"""Options of the command line that are floating-point numbers."""

from __future__ import annotations

import math

import typer

SMALLEST = 1e-300  # the minimum of options that must be above 0


def finite(value: float | None) -> float | None:
    """Reject `nan` and `inf`, which pass the checks for a minimum or maximum; the callback of every float option."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value
