"""`qualitative`: a query and its best hits as inter-event times with marks."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments import drawing
from experiments.examples import MOST, best_hits
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, listed, number, picture
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PAPER = ("audio", "celebrity", "electricity", "health")  # the sets of the paper's figure
HITS = 3
LONG = 32  # letters: a longer name of a mark is broken at its first comma
NAMED = 5  # marks with their own colour and marker; the others share the last


def measure(lab: Lab) -> None:
    """Measure on the four sets of the paper's figure, or else on the first four."""

    def look(fit: Fit) -> Result:
        return best_hits(lab.fitted(fit)[0], lab.task(fit, View()), HITS)

    pieces = []
    for data in [name for name in PAPER if name in lab.folders] or lab.data[:4]:
        fit = Fit(data=data, method="self")
        if lab.wanted(fit):
            config = lab.piece_config("qualitative", fit, hits=HITS)
            pieces.append(Piece(f"{data}/qualitative/self", config, partial(look, fit)))
    lab.run_pieces(pieces)


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure and how many of its hits are relevant."""
    shown = _looks(measured)
    if not shown:
        return f"## Queries and their hits\n\n{NOTHING}"
    if figures is not None:
        _draw(shown, figures)
    right = {data: sum(hit["relevant"] for hit in result["hits"]) for data, result in shown.items()}
    return "\n\n".join(
        [
            "## Queries and their hits",
            f"Inter-event times of a test query and its best {HITS} hits by `self (default)`, seed 0, at most {MOST} "
            "events each; colours and shapes are marks. The query is the one with the median AP of its set, so it is "
            "neither hand-picked nor lucky.",
            picture("qualitative", "A query and its best hits as inter-event times with marks, one row per data set"),
            "Relevant hits among them: "
            + listed([f"{count} of {len(shown[data]['hits'])} on {data}" for data, count in right.items()])
            + ".",
        ]
    )


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claim about what hits look like, checked by their median gap."""
    ratios = []
    for data, result in _looks(measured).items():
        asked, *hits = (float(np.median(np.diff(s["times"]))) for s in (result["query"], *result["hits"]))
        if asked > 0 and hits:
            low, high = (number(choose(hits) / asked, ".2f") for choose in (min, max))
            ratios.append(f"{low} to {high} on {data}")
    return [
        Finding(
            "The inter-event times of the best hits closely match those of the query.",
            f"for one query per set (the last figure), the median gap of the best {HITS} hits divided by the query's "
            f"is {listed(ratios)}"
            if ratios
            else "",
        )
    ]


def _looks(measured: Measured) -> dict[str, Result]:
    return {c["data"]: r for c, r in measured.pieces["qualitative"] if "error" not in r}


def _draw(shown: dict[str, Result], folder: Path) -> None:
    from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

    columns = 1 + HITS
    figure, axes = drawing.panels(columns * len(shown), columns=columns, width=3.1, height=2.2)
    for row, (data, result) in enumerate(shown.items()):
        lanes = axes[columns * row : columns * (row + 1)]
        sequences = [result["query"], *result["hits"]]
        used = np.concatenate([np.array(s["marks"][1:], int) for s in sequences])
        frequent = [mark for mark, count in Counter(used.tolist()).most_common(NAMED)]
        unit = (result["time_unit"] or "time").split(" (")[0]
        factor, unit = drawing.short_unit(max(np.diff(s["times"]).max(initial=0) for s in sequences), unit)
        gaps = factor * np.concatenate([np.diff(s["times"]) for s in sequences])
        low, high = np.quantile(gaps[gaps > 0], (0, 1)) if (gaps > 0).any() else (1.0, 1.0)
        for axis in lanes[len(sequences) :]:
            axis.set_visible(False)
        for place, (axis, one) in enumerate(zip(lanes, sequences, strict=False)):
            _gaps(axis, one, sorted(frequent), result, factor, low)
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 50 * low else (1,)))
            axis.yaxis.set_major_formatter("{x:g}")
            axis.yaxis.set_minor_locator(NullLocator())
            axis.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            axis.set_ylim(low / 2.2, high * 1.6)
            drawing.label_axes(axis, "event", f"gap, {unit}" if place == 0 else "", size=8)
            tick = "" if place == 0 else "✓ relevant" if one["relevant"] else "✗ not relevant"
            axis.set_title(f"{data}: query" if place == 0 else f"hit {place}: {tick}", fontsize=8)
        beside = lanes[len(sequences) - 1]
        signs = drawing.named_lines(lanes)
        wanted = [_mark_name(result["mark_names"], mark) for mark in (*sorted(frequent), None)]
        names = [name for name in wanted if name in signs]
        beside.legend([signs[name] for name in names], names, fontsize=7, frameon=False, loc="center left",
                      bbox_to_anchor=(1, 0.5))  # fmt: skip
    drawing.save(figure, folder, "qualitative")


def _gaps(axis: Axes, one: dict[str, Any], common: list[int], result: Result, factor: float, low: float) -> None:
    """Draw the gap before each event but the first; events at the same time lie on the floor."""
    gaps, marks = np.maximum(factor * np.diff(one["times"]), low / 1.6), np.array(one["marks"][1:], int)
    axis.plot(np.arange(2, len(gaps) + 2), gaps, color="0.8", linewidth=0.8, zorder=1)
    for place, mark in enumerate([*common, None]):
        at = marks == mark if mark is not None else ~np.isin(marks, common)
        if at.any():
            axis.scatter(np.flatnonzero(at) + 2, gaps[at], 13, drawing.COLOURS[place], marker=drawing.MARKERS[place][0],
                         zorder=2, label=_mark_name(result["mark_names"], mark))  # fmt: skip


def _mark_name(names: list[str] | None, mark: int | None) -> str:
    if mark is None:
        return "other marks"
    name = names[mark] if names and mark < len(names) else f"mark {mark}"
    return name.replace(", ", ",\n", 1) if len(name) > LONG else name
