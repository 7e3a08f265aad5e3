"""`queries`: what the models gain and lose query by query against the two best baselines of each data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from neuroseqret.experiments import accuracy, drawing
from neuroseqret.experiments.lab import Lab
from neuroseqret.experiments.markdown import NOTHING, Finding, counted, listed, picture, table
from neuroseqret.experiments.measured import Measured, Row, label, row_fit
from neuroseqret.experiments.plan import View
from neuroseqret.sequences import FloatArray

ROWS: tuple[Row, ...] = (("self", "default"), ("cross", "default"))
PAPER = ("rank-sahp", "rank-thp")  # the best baselines of the paper
TIED = 0.1  # points of AP: less is no difference
COMPETITIVE = 0.7  # the paper's share of queries


def measure(lab: Lab) -> None:
    """Nothing of its own: `accuracy` keeps AP query by query."""
    accuracy.measure(lab)


def gains(measured: Measured, baselines: Sequence[str] = ()) -> dict[tuple[str, Row, str], FloatArray]:
    """Gain in AP of every query over the baselines (none given: the two best of each data set), highest first.

    In points, by data set, model and baseline.
    """
    found = {}
    for data in measured.data:
        for row in ROWS:
            for baseline in baselines or measured.baselines(data, View())[:2]:
                mine = measured.by_query(row_fit(data, row), View())
                theirs = measured.by_query(row_fit(data, (baseline, "default")), View())
                if mine is not None and theirs is not None and len(mine) == len(theirs):
                    found[data, row, baseline] = np.sort(mine - theirs)[::-1]
    return found


def shares(gain: FloatArray) -> tuple[float, float, float]:
    """Shares of queries won, tied and lost."""
    won, lost = float((gain > TIED).mean()), float((gain < -TIED).mean())
    return won, float((np.abs(gain) <= TIED).mean()), lost


def report(measured: Measured, figures: Path | None = None) -> str:
    """The figure and the shares."""
    found = gains(measured)
    if not found:
        return f"## Query by query\n\n{NOTHING}"
    if figures is not None:
        _draw(found, figures)
    lines = [
        [data, label(row), baseline, *(f"{100 * share:.0f}" for share in shares(gain)), f"{gain.mean():+.1f}"]
        for (data, row, baseline), gain in found.items()
    ]
    return "\n\n".join(
        [
            "## Query by query",
            "Gain in AP of the default models over the two best baselines of each set (the whole corpus ranked, corpus "
            f"seen, AP averaged over seeds). Tied: within {TIED} points.",
            picture("queries", "Gain in AP of every query, sorted, one panel a data set"),
            table(["data", "model", "baseline", "won, %", "tied, %", "lost, %", "mean gain"], lines),
        ]
    )


def findings(measured: Measured) -> list[Finding]:
    """The paper's statement on single queries."""
    most = f"at least {COMPETITIVE:.0%} of the queries"
    found = {}
    for who, baselines in ((listed([f"`{name}`" for name in PAPER]), PAPER), ("the two best baselines here", ())):
        kept = [1 - shares(gain)[2] >= COMPETITIVE for gain in gains(measured, baselines).values()]
        found[f"against {who} won or tied on {most} in"] = sum(kept), len(kept)
    claim = f"On {most} of every set the model is above Rank-SAHP and Rank-THP, its best baselines, or about equal."
    return [Finding(claim, counted(found, "cases of set, model and baseline"))]


def _draw(found: dict[tuple[str, Row, str], FloatArray], folder: Path) -> None:
    names = list(dict.fromkeys(data for data, _, _ in found))
    figure, axes = drawing.panels(len(names), height=2.9)
    for axis, data in zip(axes, names, strict=True):
        axis.axhline(0, color="0.6", linewidth=0.8)
        best = list(dict.fromkeys(baseline for d, _, baseline in found if d == data))
        for (_, row, baseline), gain in ((key, gain) for key, gain in found.items() if key[0] == data):
            place = best.index(baseline)
            share = 100 * (np.arange(len(gain)) + 0.5) / len(gain)
            name = f"{label(row)} against the {('best', 'second best')[place]} baseline"
            # The first model's line is wider, so that it shows where the second lies on it.
            colour, width, dashes = (("#56B4E9", 3.0), ("#D55E00", 1.2))[ROWS.index(row)] + (("-", "--")[place],)
            axis.plot(share, gain, color=colour, linestyle=dashes, linewidth=width, label=name)
        axis.set_title(f"{data}\n(— {best[0]}" + (f", - - {best[1]})" if best[1:] else ")"), fontsize=8)
        axis.set_xlabel("queries, % (sorted by gain)", fontsize=8)
        axis.set_ylabel("gain in AP, points", fontsize=8)
    drawing.legend(figure, axes, columns=2)
    drawing.save(figure, folder, "queries")
