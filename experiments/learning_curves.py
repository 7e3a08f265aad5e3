"""`learning-curves`: validation MAP of preset `paper` while it trains, and which fits had converged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.lab import SECOND_STAGE, Lab
from experiments.markdown import MISSING, NOTHING, number, picture, table
from experiments.measured import Measured, row_fit
from experiments.plan import View
from experiments.result_cells import Result
from neuroseqret.methods.registry import MODELS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRESET = "paper"
JOINT = 0.85  # share of the budget of `self` that its last phase may take
SPENT = 0.98  # of its time: later, the time limit ended the training


def measure(lab: Lab) -> None:
    """Measure nothing: the cells of `accuracy` keep the curves."""


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and a table of where training ended and why."""
    found = curves(measured)
    if not found:
        return f"## Learning curves\n\n{NOTHING}"
    sets = list(dict.fromkeys(data for data, _ in found))
    if figures is not None:
        _draw(sets, found, figures)
    lines = [[f"{name} ({PRESET})", *(_ended(found.get((data, name))) for data in sets)] for name in MODELS]
    return "\n\n".join(
        [
            "## Learning curves",
            f"Preset `{PRESET}`, seed 0, corpus seen: MAP of validation queries while it trains, against the CPU "
            "seconds of the last phase. `self` ranks at most 4,096 corpus sequences; the second stages put lists of "
            "10 relevant and 40 random sequences of at most 32 queries in order, so their values cannot be compared "
            "with those of `self`. Training ends by itself when validation has not risen six times in a row at each of "
            "three learning rates (*converged*), or with the budget.",
            picture("learning-curves", "Validation MAP against the seconds of training, one panel per data set"),
            "The best validation MAP, the seconds until it was reached, and what ended the training:",
            table(["model", *sets], lines),
        ]
    )


def curves(measured: Measured) -> dict[tuple[str, str], Result]:
    """Return the results of seed 0 that have a curve, by data set and model."""
    found = {}
    for data in measured.data:
        for name in MODELS:
            by_seed = measured.results.get((row_fit(data, (name, PRESET)), View()), {})
            if "curve" in by_seed.get(0, {}):
                found[data, name] = by_seed[0] | {"second": name != "self"}
    return found


def converged(result: Result) -> bool:
    """Return whether training ended by itself before its budget."""
    share = SECOND_STAGE if result["second"] else JOINT
    last: float = result["curve"]["points"][-1][0]
    return last < SPENT * share * float(result["max_seconds"])


def _ended(result: Result | None) -> str:
    if result is None:
        return MISSING
    seconds, _, best = max(result["curve"]["points"], key=lambda point: point[2])
    why = "converged" if converged(result) else "budget"
    return f"{number(100 * best)} after {seconds:.0f} s, {why}"


def verdict(measured: Measured) -> str:
    """Return how many of the fits of seed 0 had converged, in words; empty if none was measured."""
    found = curves(measured)
    parts = []
    for name in MODELS:
        mine = {data: result for (data, which), result in found.items() if which == name}
        if mine:
            ended = [data for data, result in mine.items() if converged(result)]
            parts.append(f"`{name}` on {len(ended)} of {len(mine)} sets" + (f" ({', '.join(ended)})" if ended else ""))
    return (
        f"Of preset `{PRESET}`, seed 0, training had converged within its budget for {'; '.join(parts)}."
        if parts
        else ""
    )


def _draw(sets: list[str], found: dict[tuple[str, str], Result], folder: Path) -> None:
    def panel(axis: Axes, data: str) -> None:
        for place, name in enumerate(MODELS):
            if (data, name) in found:
                seconds, _, values = np.array(found[data, name]["curve"]["points"]).T
                small = 0.6 * drawing.MARKERS[place][1]
                drawing.curve(axis, seconds, 100 * values, place, name, markersize=small)
        drawing.label_axes(axis, "CPU seconds of training", "validation MAP")

    drawing.draw(folder, "learning-curves", sets, panel, height=2.8)
