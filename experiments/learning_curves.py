"""`learning-curves`: validation MAP of preset `paper` while it trains, and which fits had converged."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.accuracy import NINE
from experiments.lab import SECOND_STAGE, Lab, Piece
from experiments.markdown import MISSING, NOTHING, number, picture, table
from experiments.measured import Measured, row_fit
from experiments.outcomes import figures as figures_of
from experiments.outcomes import learning_curve
from experiments.plan import Fit, View
from experiments.result_cells import Result
from experiments.variants import preset_for
from neuroseqret.evaluation.scoring import answer
from neuroseqret.methods.registry import MODELS
from neuroseqret.models.self_attention.model import SelfAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRESET = "paper"
JOINT = 0.85  # share of the budget of `self` that its last phase may take
SPENT = 0.98  # of its time: later, the time limit ended the training
LONG = 600.0  # seconds of a long run, which shows what more time would give
LONG_DATA = ("sports", "electricity")  # sets on which the usual budget ends the training of `self`
LISTS = View(protocol="sampled")


def measure(lab: Lab) -> None:
    """Measure the long runs; the cells of `accuracy` keep the other curves."""

    def look(fit: Fit) -> Result:
        model = lab.trained(fit, SelfAttention(preset_for(PRESET, fit.data)), LONG)
        answers = answer(model, lab.task(fit, LISTS), what=fit.method)
        return {**figures_of(answers, by_query=False), **learning_curve(model)}

    fits = [Fit(data=data, method="self", preset=PRESET) for data in LONG_DATA if data in lab.folders]
    lab.run_pieces(
        [
            Piece(
                f"{fit.data}/learning-curves/self-{LONG:g}",
                lab.piece_config("learning-curves", fit, seconds=LONG),
                partial(look, fit),
            )
            for fit in fits
            if lab.wanted(fit)
        ]
    )


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and a table of where training ended and why."""
    found, longer = curves(measured), long_runs(measured)
    if not found:
        return f"## Learning curves\n\n{NOTHING}"
    sets = list(dict.fromkeys(data for data, _ in found))
    if figures is not None:
        _draw(sets, found, longer, figures)
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
            *more_time(measured, longer),
        ]
    )


def long_runs(measured: Measured) -> dict[str, Result]:
    """Return the results of the long runs by data set."""
    found = {config["data"]: result for config, result in measured.pieces["learning-curves"] if "curve" in result}
    return {data: found[data] for data in measured.data if data in found}


def more_time(measured: Measured, longer: dict[str, Result]) -> list[str]:
    """Return what a long run gives beside the usual one and the best of the nine baselines; nothing without any."""
    usual = {data: measured.results.get((row_fit(data, ("self", PRESET)), LISTS), {}).get(0) for data in longer}
    lines = []
    for data, result in longer.items():
        seconds, _, best = max(result["curve"]["points"], key=lambda point: point[2])
        before = usual[data]
        nine = [name for name in measured.baselines(data, LISTS) if name in NINE]  # the best first
        lines.append(
            [
                data,
                f"{number(100 * best)} after {seconds:.0f} s",
                number(100 * result["measures"]["AP"]),
                MISSING if before is None else number(100 * before["measures"]["AP"]),
                number(measured.mean(row_fit(data, (nine[0], "default")), LISTS)) if nine else MISSING,
            ]
        )
    if not lines:
        return []
    return [
        f"More time, `self ({PRESET})`, seed 0: the best validation MAP within {LONG:g} s, and MAP of test queries in "
        "the paper's protocol, beside the usual budget and the best of the nine baselines with it. One run each, and "
        "no baseline had more time, so small differences mean nothing:",
        table(["data", "validation", f"test, {LONG:g} s", "test, usual budget", "best of the nine"], lines),
    ]


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


def _draw(sets: list[str], found: dict[tuple[str, str], Result], longer: dict[str, Result], folder: Path) -> None:
    def panel(axis: Axes, data: str) -> None:
        shown = {name: found.get((data, name)) for name in MODELS} | {f"self, {LONG:g} s": longer.get(data)}
        for place, (name, result) in enumerate(shown.items()):
            if result is not None:
                seconds, _, values = np.array(result["curve"]["points"]).T
                small = 0.6 * drawing.MARKERS[place][1]
                drawing.curve(axis, seconds, 100 * values, place, name, markersize=small)
        drawing.seconds_of_training(axis, "validation MAP")

    drawing.draw(folder, "learning-curves", sets, panel, height=2.8)
