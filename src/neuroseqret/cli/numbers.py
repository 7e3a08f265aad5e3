"""Numbers as options of the command line."""

from __future__ import annotations

import math

import typer


def finite(value: float | None) -> float | None:
    """The callback of every option that is a float: `nan` and `inf` are floats too and pass any least or largest."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value
