"""`unwarping`: the learned U, and a relevant pair before and after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from neuroseqret.errors import UserError
from neuroseqret.experiments import drawing
from neuroseqret.experiments.cells import Result
from neuroseqret.experiments.examples import events, median_query
from neuroseqret.experiments.lab import Lab, Piece, variant_fit
from neuroseqret.experiments.markdown import NOTHING, number, picture, table
from neuroseqret.experiments.measured import Measured
from neuroseqret.experiments.plan import Fit, View
from neuroseqret.models.self_attention import SelfAttention

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MODELS = {"paper": "paper", "unwarping": "default with unwarping"}
POINTS = 101


def measure(lab: Lab) -> None:
    """The paper's data set for this figure, audio, where it is there."""
    data = "audio" if "audio" in lab.folders else lab.data[0]
    pieces = []
    for name in MODELS:
        fit = variant_fit(data, name)
        if lab.wanted(fit):
            config = lab.piece_config("unwarping", fit, "neuroseqret.experiments.examples", model=name)
            pieces.append(Piece(f"{data}/unwarping/{name}", config, lambda fit=fit: _look(lab, fit)))  # type: ignore[misc]
    lab.run_pieces(pieces)


def _look(lab: Lab, fit: Fit) -> Result:
    model, _ = lab.fitted(fit)
    assert isinstance(model, SelfAttention)
    warp = model.network.unwarp
    if warp is None:
        raise UserError(f"{fit.label} has no unwarping")
    task = lab.task(fit, View())
    row, answers = median_query(model, task)
    relevant = set(task.relevance.of(row).tolist())
    ranking = [place for place in answers.top_rows[row].tolist() if place in relevant]
    query, hit = task.queries[row], task.corpus[ranking[0] if ranking else min(relevant)]
    times = torch.linspace(0, warp.horizon, POINTS, dtype=torch.float64)
    with torch.no_grad():
        mapped = warp(times).numpy()
        moved = warp(torch.as_tensor(query.times - (query.start or 0.0))).numpy()
    after = [float(f"{time:.5g}") for time in moved[: len(events(query)["times"])] - moved[0]]
    return {
        "time_unit": query.time_unit,
        "times": [float(f"{t:.5g}") for t in times.tolist()],
        "unwarped_times": [float(f"{t:.5g}") for t in mapped.tolist()],
        "query": events(query, unwarped=after),
        "hit": events(hit),
    }


def report(measured: Measured, figures: Path | None = None) -> str:
    """The figure, and how far U moves times."""
    found = {c["model"]: (c["data"], r) for c, r in measured.pieces["unwarping"] if "error" not in r}
    shown = {name: found[name] for name in MODELS if name in found}
    if not shown:
        return f"## Unwarping\n\n{NOTHING}"
    if figures is not None:
        _draw(shown, figures)
    lines = [[MODELS[name], data, *_facts(result)] for name, (data, result) in shown.items()]
    return "\n\n".join(
        [
            "## Unwarping",
            "The learned U (left) and the counts of events of a test query and of its best-ranked relevant corpus "
            "sequence, before (middle) and after U (right); the query is the one with the median AP. At most the first "
            "60 events; times from the first event. U is one function for all queries.",
            picture("unwarping", "The learned unwarping, and a relevant pair before and after it"),
            table(["model", "data", "largest move, % of the window", "slope of U, least", "most"], lines),
        ]
    )


def _facts(result: Result) -> list[str]:
    times, moved = np.array(result["times"]), np.array(result["unwarped_times"])
    largest = float(np.abs(moved - times).max() / times[-1])
    slope = np.diff(moved) / np.diff(times)
    return [number(100 * largest, ".2f"), number(float(slope.min()), ".2f"), number(float(slope.max()), ".2f")]


def _draw(shown: dict[str, tuple[str, Result]], folder: Path) -> None:
    figure, axes = drawing.panels(3 * len(shown), columns=3, width=3.6)
    for row, (name, (data, result)) in enumerate(shown.items()):
        left, before, after = axes[3 * row : 3 * row + 3]
        unit = (result["time_unit"] or "the data's unit").split(" (")[0]
        left.plot(result["times"], result["times"], "--", color="0.6", linewidth=1, label="identity")
        left.plot(result["times"], result["unwarped_times"], color=drawing.COLOURS[2], linewidth=1.8, label="U(t)")
        left.set_title(f"{data}: {MODELS[name]}", fontsize=9)
        left.set_xlabel(f"t, {unit}", fontsize=8)
        left.set_ylabel(f"U(t), {unit}", fontsize=8)
        left.legend(fontsize=8, frameon=False, loc="upper left")
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
