"""`unwarping`: the learned U, and a relevant pair before and after it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.examples import MOST, unwarped_pair
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, listed, number, picture, table
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from experiments.variants import variant_fit
from neuroseqret.data.sequences import FloatArray
from neuroseqret.models.self_attention.model import SelfAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_DATA = "audio"
IDENTITY = 0.01  # a slope of U closer to 1 than this makes no visible change
MODELS = {"paper-literal": "paper-literal", "unwarping": "neural with unwarping"}


def measure(lab: Lab) -> None:
    """Measure on audio, the data set of the paper's figure, or else on the first set."""
    data = PAPER_DATA if PAPER_DATA in lab.folders else lab.data[0]

    def look(fit: Fit) -> Result:
        model, _ = lab.fitted(fit)
        assert isinstance(model, SelfAttention)
        return unwarped_pair(model, lab.task(fit, View()))

    pieces = []
    for name in MODELS:
        fit = variant_fit(data, name)
        if lab.wanted(fit):
            config = lab.piece_config("unwarping", fit, model=name)
            pieces.append(Piece(f"{data}/unwarping/{name}", config, partial(look, fit)))
    lab.run_pieces(pieces)


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and a table of how far U moves times."""
    shown = _looks(measured)
    if not shown:
        return f"## Unwarping\n\n{NOTHING}"
    if figures is not None:
        _draw(shown, figures)
    lines = [[MODELS[name], data, *_facts(result)] for name, (data, result) in shown.items()]
    return "\n\n".join(
        [
            "## Unwarping",
            "Left: how far the learned U moves a time. Middle: the number of events so far in a test query, before and "
            "after U, and in a relevant corpus sequence. Right: how far U moves each event of the query. The query is "
            "the one with the median number of events, and the relevant sequence is the nearest to it in length. Times "
            f"start at the first event; at most {MOST} events are shown. U is one function for all queries. "
            f"{_meaning(shown)}",
            picture("unwarping", "The learned unwarping, a relevant pair before and after it, and how far events move"),
            table(["model", "data", "largest move", "% of the window", "largest |slope − 1|, %"], lines, text=2),
        ]
    )


def _meaning(shown: dict[str, tuple[str, Result]]) -> str:
    """Return what the numbers say in words."""
    slopes = {MODELS[name]: _steepest(result) for name, (_, result) in shown.items()}
    same = [name for name, slope in slopes.items() if slope < IDENTITY]
    if not same:
        return ""
    whose = "both models" if len(same) == len(MODELS) else f"`{listed(same)}`"
    limit = f"{100 * IDENTITY:g} %"
    return f"For {whose} U is practically the identity: no interval becomes longer or shorter by {limit}."


def _looks(measured: Measured) -> dict[str, tuple[str, Result]]:
    """Return the looks of one data set by model; the paper's data set if it was measured."""
    looks = [(c["data"], c["model"], r) for c, r in measured.pieces["unwarping"] if "error" not in r]
    chosen = min((data for data, _, _ in looks), key=lambda data: (data != PAPER_DATA, data), default="")
    found = {model: (data, result) for data, model, result in looks if data == chosen}
    return {name: found[name] for name in MODELS if name in found}


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claim about what U learns."""
    moves = [f"{_facts(r)[1]} % on {d} ({MODELS[name]})" for name, (d, r) in _looks(measured).items()]
    found = f"as a share of the longest window, U moves times by at most {listed(moves)}" if moves else ""
    return [Finding("U learns a transformation of the query that brings it close to a relevant sequence.", found)]


def _facts(result: Result) -> list[str]:
    times, moved = np.array(result["times"]), np.array(result["unwarped_times"])
    largest = float(np.abs(moved - times).max())
    factor, unit = drawing.short_unit(largest, _unit(result))
    share = number(100 * largest / float(times[-1]), ".2g")
    return [f"{number(factor * largest, '.2g')} {unit}", share, number(100 * _steepest(result), ".2g")]


def _steepest(result: Result) -> float:
    """Return the largest difference of the slope of U from 1, between two points of the grid."""
    slope = np.diff(result["unwarped_times"]) / np.diff(result["times"])
    return float(np.abs(slope - 1).max())


def _unit(result: Result) -> str:
    return (result["time_unit"] or "the data's unit").split(" (")[0]


def _draw(shown: dict[str, tuple[str, Result]], folder: Path) -> None:
    figure, axes = drawing.panels(3 * len(shown), columns=3)
    for row, (name, (data, result)) in enumerate(shown.items()):
        left, middle, right = axes[3 * row : 3 * row + 3]
        moved = np.array(result["unwarped_times"]) - np.array(result["times"])
        _moves(left, np.array(result["times"]), moved, _unit(result), "-")
        left.set_title(f"{data}, {MODELS[name]}: U", fontsize=10)
        query, hit = result["query"], result["hit"]
        times, after, theirs = (np.array(one) for one in (query["times"], query["unwarped"], hit["times"]))
        factor, unit = drawing.short_unit(max(times[-1], theirs[-1]), _unit(result))
        _counts(middle, factor * times, drawing.COLOURS[0], "-", "query")
        middle.plot(factor * after, np.arange(1, len(after) + 1), "o", color="black", markersize=2.5, label="U(query)")
        _counts(middle, factor * theirs, drawing.COLOURS[5], "--", "relevant sequence")
        middle.set_title("a relevant pair before and after U", fontsize=10)
        drawing.label_axes(middle, f"time from the first event, {unit}", "events so far")
        middle.legend(fontsize=8, frameon=False, loc="upper left")
        _moves(right, times, after - times, _unit(result), "o")
        right.set_title("the query's events", fontsize=10)
        right.set_xlabel(right.get_xlabel().replace("t,", "t from the first event,"), fontsize=9)
    drawing.save(figure, folder, "unwarping")


def _moves(axis: Axes, times: FloatArray, moved: FloatArray, unit: str, style: str) -> None:
    """Draw U(t) - t against t, each in a suitable unit."""
    (along, time_unit), (up, move_unit) = (drawing.short_unit(np.abs(x).max(), unit) for x in (times, moved))
    axis.axhline(0, color="0.6", linewidth=1, linestyle="--")
    axis.plot(along * times, up * moved, style, color=drawing.COLOURS[2], markersize=3.5, linewidth=1.8)
    drawing.label_axes(axis, f"t, {time_unit}", f"U(t) − t, {move_unit}")
    axis.yaxis.set_major_formatter("{x:g}")
    axis.margins(y=0.15)


def _counts(axis: Axes, times: FloatArray, colour: str, style: str, name: str) -> None:
    axis.step(times, np.arange(1, len(times) + 1), where="post", color=colour, linestyle=style, label=name)
