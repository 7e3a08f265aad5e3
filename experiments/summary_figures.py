"""What the summary of the results counts: MAP of the default presets with the whole corpus ranked, seen and unseen."""

from __future__ import annotations

import numpy as np

from experiments import second_stages
from experiments.measured import Measured, row_fit
from experiments.plan import View

TITLES = {"unseen": "corpus not seen in training", "seen": "corpus seen in training"}


def mean(measured: Measured, data: str, name: str, corpus: str) -> float:
    """Return the MAP of a method with its default preset, the whole corpus ranked."""
    return measured.mean(row_fit(data, (name, "default"), corpus), View())


def everywhere(measured: Measured, name: str) -> bool:
    """Return whether a method was measured on all sets, with the corpus seen and unseen."""
    return not any(np.isnan(mean(measured, data, name, corpus)) for data in measured.data for corpus in TITLES)


def complete(measured: Measured, name: str) -> bool:
    """Return whether a method was measured everywhere, and a second stage with all the seeds of its first stage.

    With fewer seeds it would differ from its first stage by the seeds alone.
    """
    if not everywhere(measured, name) or name not in second_stages.SECOND:
        return everywhere(measured, name)
    fits = [
        [row_fit(data, (n, "default"), corpus) for n in (name, "self")] for data in measured.data for corpus in TITLES
    ]
    return all(len(measured.answered(a, View())) >= len(measured.answered(b, View())) for a, b in fits)


def models(measured: Measured) -> list[str]:
    """Return those of `self` and `cross` that were measured on all sets, `cross` with all seeds of `self`."""
    return [name for name in ("self", "cross") if complete(measured, name)]
