"""`queries`: the gain of the models, query by query, over the two best baselines of each data set."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import accuracy, drawing
from experiments.lab import Lab
from experiments.markdown import NOTHING, Finding, counted, listed, number, percent, picture, table
from experiments.measured import Measured, Row, label, row_fit
from experiments.plan import View
from neuroseqret.data.sequences import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS: tuple[Row, ...] = (("self", "default"), ("cross", "default"))
PAPER = ("rank-sahp", "rank-thp")  # the best baselines of the paper
TIED = 0.1  # points of AP: a smaller difference is a tie
NEAR = 1.0  # points of AP: beyond this the axis is logarithmic if a set has a few large gains
COMPETITIVE = 0.7  # share of queries in the paper's claim


def measure(lab: Lab) -> None:
    """Measure `accuracy`, which keeps AP query by query."""
    accuracy.measure(lab)


def gains(measured: Measured, baselines: Sequence[str] = ()) -> dict[tuple[str, Row, str], FloatArray]:
    """Return the gain in AP of every query in points, highest first, by data set, model and baseline.

    Without `baselines`, the two best of each data set are taken.
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
    """Return the shares of queries won, tied and lost."""
    won, lost = float((gain > TIED).mean()), float((gain < -TIED).mean())
    return won, float((np.abs(gain) <= TIED).mean()), lost


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and the table of shares."""
    found = gains(measured)
    if not found:
        return f"## Query by query\n\n{NOTHING}"
    if figures is not None:
        _draw(found, figures)
    lines = [
        [data, label(row), baseline, *(f"{100 * share:.0f}" for share in shares(gain)), number(gain.mean(), "+.1f")]
        for (data, row, baseline), gain in found.items()
    ]
    return "\n\n".join(
        [
            "## Query by query",
            "Gain in AP of the default models over the two best baselines of each set, with the whole corpus ranked, "
            f"the corpus seen and AP averaged over seeds. A difference of at most {TIED} points is a tie. Where nearly "
            f"all gains of a set are small beside the largest, the axis is logarithmic beyond ±{NEAR:g} point.",
            picture("queries", "Gain in AP of every query, sorted, one panel per data set"),
            table(["data", "model", "baseline", "won, %", "tied, %", "lost, %", "mean gain"], lines, text=3),
        ]
    )


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claim about single queries."""
    most = f"at least {percent(COMPETITIVE)} of the queries"
    found = {}
    for who, baselines in ((listed([f"`{name}`" for name in PAPER]), PAPER), ("the two best baselines here", ())):
        kept = [1 - shares(gain)[2] >= COMPETITIVE for gain in gains(measured, baselines).values()]
        found[f"against {who}, a model wins or ties on {most} in"] = sum(kept), len(kept)
    claim = f"On {most} of every set the model is above, or about equal to, Rank-SAHP and Rank-THP, its best baselines."
    return [Finding(claim, counted(found, "cases (one per set, model and baseline)"))]


def _draw(found: dict[tuple[str, Row, str], FloatArray], folder: Path) -> None:
    from matplotlib.lines import Line2D

    colours = dict(zip(dict.fromkeys(baseline for _, _, baseline in found), drawing.COLOURS, strict=False))
    # The lines of the two models often lie on each other: the first is light, so that the second is visible.
    looks: list[tuple[tuple[float, Sequence[float]], float]] = [((0, ()), 0.45), ((0, (3, 2)), 1.0)]
    styles = dict(zip(ROWS, looks, strict=True))

    def panel(axis: Axes, data: str) -> None:
        axis.axhline(0, color="0.6", linewidth=0.8)
        ours = {key: gain for key, gain in found.items() if key[0] == data}
        for (_, row, baseline), gain in ours.items():
            share = 100 * (np.arange(len(gain)) + 0.5) / len(gain)
            dashes, strength = styles[row]
            axis.plot(share, gain, color=colours[baseline], linestyle=dashes, alpha=strength, linewidth=1.8)
        gained = "gain in AP, points"
        if _is_spike(np.concatenate(list(ours.values()))):
            axis.set_yscale("symlog", linthresh=NEAR)
            axis.yaxis.set_major_formatter("{x:g}")
            gained += f" (log beyond ±{NEAR:g})"
        drawing.label_axes(axis, "queries, % (sorted by gain)", gained)

    named = {
        f"{label(row)}": Line2D([], [], color="black", linestyle=dashes, alpha=strength, linewidth=1.8)
        for row, (dashes, strength) in styles.items()
    }
    named |= {f"against {name}": Line2D([], [], color=colour, linewidth=4) for name, colour in colours.items()}
    names = list(dict.fromkeys(data for data, _, _ in found))
    drawing.draw(folder, "queries", names, panel, height=3.3, named=named)


def _is_spike(gains: FloatArray) -> bool:
    """Return whether a few gains are so large that a linear axis would hide all others."""
    size = np.abs(gains)
    return bool(np.quantile(size, 0.9) < 0.1 * size.max())
