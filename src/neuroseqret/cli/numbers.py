"""Checks of options that are numbers; each is the callback of an option, so that help texts stay free of odd bounds."""

from __future__ import annotations

import math

import typer

_SEEDS = 2**32


def finite(value: float | None) -> float | None:
    """Reject `nan` and `inf`, which pass the checks for a minimum or maximum; for every float option."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def positive(value: float | None) -> float | None:
    """Reject numbers that are not above 0, and those that are not finite."""
    if value is not None and not (math.isfinite(value) and value > 0):
        raise typer.BadParameter(f"{value:g} is not a number above 0.")
    return value


def seed_number(value: int) -> int:
    """Reject seeds that the generators of random numbers do not take."""
    if not 0 <= value < _SEEDS:
        raise typer.BadParameter(f"{value} is not between 0 and {_SEEDS - 1}.")
    return value
