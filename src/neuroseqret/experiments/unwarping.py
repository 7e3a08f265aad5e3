"""`unwarping`: the learned U, and a relevant pair before and after it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neuroseqret.experiments import drawing
from neuroseqret.experiments.cells import Result
from neuroseqret.experiments.examples import MOST, unwarped_pair
from neuroseqret.experiments.lab import Lab, Piece, variant_fit
from neuroseqret.experiments.markdown import NOTHING, Finding, listed, number, picture, table
from neuroseqret.experiments.measured import Measured
from neuroseqret.experiments.plan import Fit, View
from neuroseqret.models.self_attention import SelfAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER_DATA = "audio"
MODELS = {"paper": "paper", "unwarping": "default with unwarping"}


def measure(lab: Lab) -> None:
    """The paper's data set for this figure, audio, where it is there."""
    data = PAPER_DATA if PAPER_DATA in lab.folders else lab.data[0]

    def look(fit: Fit) -> Result:
        model, _ = lab.fitted(fit)
        assert isinstance(model, SelfAttention)
        return unwarped_pair(model, lab.task(fit, View()))

    pieces = []
    for name in MODELS:
        fit = variant_fit(data, name)
        if lab.wanted(fit):
            config = lab.piece_config("unwarping", fit, "neuroseqret.experiments.examples", model=name)
            pieces.append(Piece(f"{data}/unwarping/{name}", config, partial(look, fit)))
    lab.run_pieces(pieces)


def report(measured: Measured, figures: Path | None = None) -> str:
    """The figure, and how far U moves times."""
    shown = _looks(measured)
    if not shown:
        return f"## Unwarping\n\n{NOTHING}"
    if figures is not None:
        _draw(shown, figures)
    lines = [[MODELS[name], data, *_facts(result)] for name, (data, result) in shown.items()]
    return "\n\n".join(
        [
            "## Unwarping",
            "How far the learned U moves a time (left), and the counts of events of a test query and of its "
            "best-ranked relevant corpus sequence, before (middle) and after U (right). The query is the one with "
            f"the median AP; times from the first event, at most {MOST} events. U is one function for all queries.",
            picture("unwarping", "The learned unwarping, and a relevant pair before and after it"),
            table(["model", "data", "largest move, % of the window", "slope of U, least", "most"], lines),
        ]
    )


def _looks(measured: Measured) -> dict[str, tuple[str, Result]]:
    """By model, of one data set: the paper's where it was measured."""
    looks = [(c["data"], c["model"], r) for c, r in measured.pieces["unwarping"] if "error" not in r]
    chosen = min((data for data, _, _ in looks), key=lambda data: (data != PAPER_DATA, data), default="")
    found = {model: (data, result) for data, model, result in looks if data == chosen}
    return {name: found[name] for name in MODELS if name in found}


def findings(measured: Measured) -> list[Finding]:
    """The paper's statement on what U learns."""
    moves = [f"{_facts(r)[0]} % on {d} ({MODELS[name]})" for name, (d, r) in _looks(measured).items()]
    found = f"U moves times by at most {listed(moves)} of the longest window" if moves else ""
    return [Finding("U learns a transformation of the query that brings it close to a relevant sequence.", found)]


def _facts(result: Result) -> list[str]:
    times, moved = np.array(result["times"]), np.array(result["unwarped_times"])
    largest = float(np.abs(moved - times).max() / times[-1])
    slope = np.diff(moved) / np.diff(times)
    return [number(100 * largest, ".2g"), number(float(slope.min()), ".2f"), number(float(slope.max()), ".2f")]


def _draw(shown: dict[str, tuple[str, Result]], folder: Path) -> None:
    figure, axes = drawing.panels(3 * len(shown), columns=3, width=3.6)
    for row, (name, (data, result)) in enumerate(shown.items()):
        left, before, after = axes[3 * row : 3 * row + 3]
        unit = (result["time_unit"] or "the data's unit").split(" (")[0]
        moved = np.array(result["unwarped_times"]) - np.array(result["times"])
        left.axhline(0, color="0.6", linewidth=1, linestyle="--", label="identity")
        left.plot(result["times"], moved, color=drawing.COLOURS[2], linewidth=1.8, label="U(t) − t")
        left.set_title(f"{data}: {MODELS[name]}", fontsize=9)
        left.set_xlabel(f"t, {unit}", fontsize=8)
        left.set_ylabel(f"U(t) − t, {unit}", fontsize=8)
        left.yaxis.set_major_formatter("{x:g}")  # a power of ten above the axis would run into the title
        left.margins(y=0.35)
        left.legend(fontsize=8, frameon=False, loc="upper left", ncols=2)
        query, hit = result["query"], result["hit"]
        for axis, times, title in ((before, query["times"], "before"), (after, query["unwarped"], "after U")):
            _counts(axis, times, drawing.COLOURS[0], "-", "query" if axis is before else "U(query)")
            _counts(axis, hit["times"], drawing.COLOURS[5], "--", "relevant hit")
            axis.set_title(title, fontsize=9)
            axis.set_xlabel(f"time from the first event, {unit}", fontsize=8)
            axis.set_ylabel("events so far", fontsize=8)
            axis.legend(fontsize=8, frameon=False, loc="upper left")
            axis.set_ylim(0, 1.3 * max(len(query["times"]), len(hit["times"])))
    drawing.save(figure, folder, "unwarping")


def _counts(axis: Axes, times: list[float], colour: str, style: str, name: str) -> None:
    axis.step(times, np.arange(1, len(times) + 1), where="post", color=colour, linestyle=style, label=name)
