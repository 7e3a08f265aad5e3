"""`training-time`: MAP against the processor time that training takes, corpus unseen."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments import drawing
from experiments.lab import Lab, Piece
from experiments.markdown import MISSING, NOTHING, number, picture, table
from experiments.measured import Measured, row_fit
from experiments.outcomes import figures as figures_of
from experiments.plan import Fit, View
from experiments.result_cells import Result
from neuroseqret.baselines.gru import GRUSettings
from neuroseqret.baselines.histogram_metric import HistogramMetricSettings
from neuroseqret.baselines.point_process import PointProcessSettings
from neuroseqret.evaluation.scoring import answer
from neuroseqret.models.presets import DEFAULT
from neuroseqret.training.loop_settings import LoopSettings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DATA = ("sports", "health", "audio")
METHODS = ("self", "histogram-metric", "gru", "rank-rmtpp", "rank-sahp", "rank-thp")
SHORT, LONG = 30.0, 600.0  # seconds; the budget between them is that of `accuracy`
TIMES = 5  # the steps that a method may take within `LONG`, as a multiple of its usual ones
CORPUS: Literal["unseen"] = "unseen"

Settings = dict[str, Any]


def longer(method: str) -> Settings:
    """Return settings with `TIMES` as many steps; where a method stops early, it may also wait longer."""
    if method == "self":
        return {"head": _more_steps(DEFAULT.head)}
    if method in ("gru", "histogram-metric"):
        settings = GRUSettings() if method == "gru" else HistogramMetricSettings()
        return {"loop": _more_steps(settings.loop)}
    return {"steps": TIMES * PointProcessSettings().steps}


def _more_steps(loop: LoopSettings | None) -> Settings:
    assert loop is not None
    assert loop.steps is not None
    return loop.model_copy(update={"steps": TIMES * loop.steps}).model_dump()


def measure(lab: Lab) -> None:
    """Measure the shorter budget everywhere, then the longer one, set by set; the usual one is in `accuracy`."""

    def look(fit: Fit, seconds: float, settings: Settings) -> Result:
        model, spent = replace(lab, max_seconds=seconds).fit_with(fit, settings)
        return {**figures_of(answer(model, lab.task(fit, View()), what=fit.method), by_query=False), **spent}

    pieces = []
    for seconds in (SHORT, LONG):
        for data in DATA:
            for method in METHODS:
                fit = Fit(data=data, method=method, corpus=CORPUS)
                if data not in lab.folders or not lab.wanted(fit):
                    continue
                settings = longer(method) if seconds == LONG else {}
                config = lab.piece_config("training-time", fit, seconds=seconds, settings=settings)
                name = f"{data}/training-time/{method}-{seconds:g}"
                pieces.append(Piece(name, config, partial(look, fit, seconds, settings)))
    lab.run_pieces(pieces)


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and a table of MAP by method and budget."""
    points = {data: _points(measured, data) for data in measured.data if data in DATA}
    shown = {data: found for data, found in points.items() if any(len(one) > 1 for one in found.values())}
    if not shown:
        return f"## Quality against training time\n\n{NOTHING}"
    if figures is not None:
        _draw(shown, figures)
    budgets = sorted({budget for found in shown.values() for one in found.values() for budget, _, _ in one})
    more = f" Within {LONG:g} s every method may take {TIMES} times as many steps as usual." if LONG in budgets else ""
    lines = []
    for method in METHODS:
        cells = []
        for found in shown.values():
            by_budget = {budget: f"{ap:.1f} ({spent:,.0f} s)" for budget, spent, ap in found[method]}
            cells += [by_budget.get(budget, MISSING) for budget in budgets]
        lines.append([method, *cells])
    head = [f"{data}, {budget:g} s" for data in shown for budget in budgets]
    parts = [
        "## Quality against training time",
        "MAP in points with the whole corpus ranked and the corpus unseen, seed 0, and in brackets the CPU seconds of "
        "one core that training took. A method may stop before its budget is spent: when validation no longer "
        f"improves, or when its steps are done.{more}",
        picture("training-time", "MAP against the CPU seconds of training, one panel per data set"),
        table(["method", *head], lines),
        _lead(measured),
    ]
    return "\n\n".join(filter(None, parts))


def _points(measured: Measured, data: str) -> dict[str, list[tuple[float, float, float]]]:
    """Return budget, seconds spent and MAP of every method, by budget."""
    found: dict[str, list[tuple[float, float, float]]] = {method: [] for method in METHODS}
    for config, result in measured.pieces["training-time"]:
        if config["data"] == data and config["method"] in found and "error" not in result:
            found[config["method"]].append((config["seconds"], *_spent_and_map(result)))
    for method in METHODS:
        by_seed = measured.results.get((row_fit(data, (method, "default"), CORPUS), View()), {})
        if 0 in by_seed and "error" not in by_seed[0]:
            found[method].append((by_seed[0]["max_seconds"], *_spent_and_map(by_seed[0])))
    return {method: sorted(one) for method, one in found.items()}


def _spent_and_map(result: Result) -> tuple[float, float]:
    return float(result["fit_cpu_seconds"]), 100 * float(result["measures"]["AP"])


def _lead(measured: Measured) -> str:
    """Return what the longest training changes, in words; empty if it was not measured."""
    gaps = []
    for data in DATA:
        found = _points(measured, data)
        longest = {method: ap for method, one in found.items() for budget, _, ap in one if budget == LONG}
        others = {method: ap for method, ap in longest.items() if method != "self"}
        if "self" in longest and others:
            best = max(others, key=others.__getitem__)
            gaps.append(f"{number(longest['self'] - others[best], '+.1f')} points on {data} (`{best}`)")
    return f"With {LONG:g} s each, `self` differs from the best of the others by {', '.join(gaps)}." if gaps else ""


def _draw(shown: dict[str, dict[str, list[tuple[float, float, float]]]], folder: Path) -> None:
    def panel(axis: Axes, data: str) -> None:
        for place, (method, points) in enumerate(shown[data].items()):
            if points:
                _, spent, aps = np.array(points).T
                order = np.argsort(spent)
                drawing.curve(axis, spent[order], aps[order], place, method, linewidth=1.5)
        drawing.seconds_of_training(axis, "MAP")

    drawing.draw(folder, "training-time", list(shown), panel, title_size=10)
