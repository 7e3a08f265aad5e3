"""Draw an explanation: two time lines with the part of every event, a heat map of all pairs, and the parts by kind."""

from __future__ import annotations

from os import PathLike
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from neuroseqret.data.durations import axis_unit, duration, number
from neuroseqret.data.figures import new_figure
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import FloatArray
from neuroseqret.errors import visible
from neuroseqret.explanation.attribution import Explanation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TALLEST = 0.38  # height of the largest bar; the two time lines are 1 apart
# Purple and brown say "adds" and "takes away", wherever they occur; no mark has them.
_FOR, _AGAINST = "#542788", "#8c510a"
_UNWARPED = "#882255"  # the curve of U(t); no mark has it either
_NO_MATCH = 0.1  # a score below this is not drawn as a match
_ALIKE = 1.5  # gaps whose ratio is not above this are called alike
#: What was compared, as the title calls it.
_COMPARED = {
    "marks": "the marks",
    "times": "the times",
    "marks and times": "marks and times together",
    "whole sequence": "the sequences as a whole",
    "memory": "the memory of the second stage",
    "attention between events": "the second stage's attention between events",
}
_LINE = 110  # letters of the title that fit into a line
_NAMED = 9  # number of marks that get a colour; the others are grey
# The palette of Okabe and Ito, which colour-blind people can tell apart, and two greys.
_COLOURS = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9"),
    *("#F0E442", "#000000", "#666666", "#AAAAAA"),
)


def picture(explanation: Explanation, path: str | PathLike[str]) -> None:
    """Write the explanation as a PNG."""
    figure_of(explanation).savefig(path, format="png", dpi=120)


def figure_of(explanation: Explanation) -> Figure:
    """Draw the explanation."""
    figure = new_figure(figsize=(11, 7.5))
    grid = figure.add_gridspec(2, 2, height_ratios=(1, 1.35), width_ratios=(1.5, 1))
    _time_lines(figure.add_subplot(grid[0, :]), explanation)
    _heat_map(figure.add_subplot(grid[1, 0]), explanation)
    if explanation.unwarping is None:
        _parts(figure.add_subplot(grid[1, 1]), explanation)
    else:
        below = grid[1, 1].subgridspec(2, 1, height_ratios=(1.5, 1))
        _parts(figure.add_subplot(below[0]), explanation)
        _unwarping(figure.add_subplot(below[1]), *explanation.unwarping)
    query, hit = explanation.query, explanation.hit
    matches = f"Why {_named(hit)} matches {_named(query)}"
    if explanation.score < _NO_MATCH:
        matches = f"{_named(hit)} does not match {_named(query)}"
    lines = [line for part in (f"{matches}: score {explanation.score:.3f}", what_matters(explanation))
             for line in wrap(part, _LINE)]  # fmt: skip
    figure.suptitle("\n".join(lines), fontsize=12, parse_math=False)  # ids may contain dollar signs
    return figure


def what_matters(explanation: Explanation) -> str:
    """Say in words what adds most to the score, by what was compared, and what takes most away."""
    values = dict(explanation.parts)
    most, least = max(values, key=lambda name: values[name]), min(values, key=lambda name: values[name])
    if values[most] <= 0:
        return "Nothing adds to the score."
    said = f"Most comes from {_COMPARED.get(most, most)} ({values[most]:+.2f})"
    if values[least] < -0.005:
        said += f", least from {_COMPARED.get(least, least)} ({values[least]:+.2f})"
    marks = _strongest_marks(explanation)
    return f"{said}. {marks}" if marks else f"{said}."


def _strongest_marks(explanation: Explanation) -> str:
    """Name the mark whose events in the hit add most, and say how long after other events it comes in both."""
    hit, parts = explanation.hit, explanation.of_hit_events
    if not len(parts) or float(np.max(parts)) <= 0:
        return ""
    sums = np.bincount(hit.marks, np.maximum(parts, 0))
    mark = int(np.argmax(sums))
    names = hit.mark_names or explanation.query.mark_names
    name = visible(names[mark]) if names and mark < len(names) else f"mark {mark}"
    said = f"Of the hit's marks, '{name}' adds most"
    waits = [np.diff(one.times)[one.marks[1:] == mark] for one in (hit, explanation.query)]
    if not all(len(gaps) for gaps in waits):
        return f"{said}."
    of_hit, of_query = (float(np.median(gaps)) for gaps in waits)
    divisor, unit = axis_unit(max(of_hit, of_query), hit.time_unit or explanation.query.time_unit)
    shown, compared = number(of_hit / divisor), number(of_query / divisor)
    alike = max(of_hit, of_query) <= _ALIKE * min(of_hit, of_query)
    end = f", as in the query ({compared})" if alike else f" (in the query {compared})"
    return f"{said}, typically {shown} {visible(unit)} after the event before it{end}."


def _named(sequence: EventSequence) -> str:
    """Return the title of a sequence, if it has one, or its id, and its group."""
    title = sequence.metadata.get("title")
    name = title if isinstance(title, str) and title else sequence.id
    return visible(f"{name} ({sequence.group})" if sequence.group else name)


def _time_lines(axes: Axes, explanation: Explanation) -> None:
    query, hit = explanation.query, explanation.hit
    places = [_places(query), _places(hit)]
    used = np.concatenate([query.marks, hit.marks])
    common = [int(m) for m in np.argsort(-np.bincount(used), kind="stable")[:_NAMED] if (used == m).any()]
    colour = dict(zip(common, _COLOURS, strict=False))
    given = [explanation.of_query_events, explanation.of_hit_events]
    for row, (sequence, place, parts) in enumerate(((hit, places[1], given[1]), (query, places[0], given[0]))):
        axes.hlines(row, 0, 1, color="0.85", zorder=0)
        colours = [_FOR if part > 0 else _AGAINST for part in parts]
        tallest = _TALLEST / (np.abs(parts).max() or 1.0)
        axes.vlines(place, row, row + tallest * parts, color=colours, linewidth=3, alpha=0.6, zorder=1)
        for mark in dict.fromkeys(sequence.marks.tolist()):
            at = sequence.marks == mark
            axes.scatter(place[at], np.full(at.sum(), row), 42, colour.get(mark, "0.75"), zorder=2, edgecolors="white",
                         linewidths=0.5)  # fmt: skip
    names = query.mark_names or hit.mark_names
    labels = [visible(names[mark]) if names and mark < len(names) else f"mark {mark}" for mark in common]
    for mark, label in zip(common, labels, strict=True):
        shown = label if len(label) < 46 else label[:44] + "…"
        axes.scatter(
            [], [], 42, colour[mark], label=f" {shown}" if shown.startswith("_") else shown
        )  # matplotlib leaves out labels that start with "_"
    columns = 5 if max(map(len, labels), default=0) < 24 else 3
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.02), ncol=columns, frameon=False, fontsize=8)
    for text in legend.get_texts():
        text.set_parse_math(False)
    time_unit = query.time_unit or hit.time_unit
    spans = [f"query\n{visible(duration(_span(query), time_unit))}", f"hit\n{visible(duration(_span(hit), time_unit))}"]
    axes.set_yticks([1, 0], spans, parse_math=False)
    axes.set_xticks([])
    axes.set_ylim(-0.45, 1.45)
    axes.set_title("bars: what an event adds to the score in all its pairs, or takes; each line has its own time scale",
                   fontsize=9)  # fmt: skip
    for side in axes.spines.values():
        side.set_visible(False)


def _places(sequence: EventSequence) -> np.ndarray:
    """Return the position of each event on a line of length 1."""
    return (sequence.times - sequence.times[0]) / max(_span(sequence), np.finfo(np.float64).tiny)


def _span(sequence: EventSequence) -> float:
    return float(sequence.times[-1] - sequence.times[0])


def _heat_map(axes: Axes, explanation: Explanation) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    pairs = explanation.pairs
    limit = float(np.quantile(np.abs(pairs), 0.995)) or 1e-12  # a single large pair must not hide the others
    colours = LinearSegmentedColormap.from_list("against and for", [_AGAINST, "#FFFFFF", _FOR])
    shown = axes.imshow(pairs, cmap=colours, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    axes.set_xlabel("event of the hit")
    axes.set_ylabel("event of the query")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    rest = explanation.matrix.sum() - pairs.sum()
    axes.set_title(f"pairs of events: {pairs.sum():+.3f} of the score; not from pairs: {rest:+.3f}",
                   fontsize=9)  # fmt: skip
    bar = axes.figure.colorbar(shown, ax=axes, shrink=0.9, extend="both")
    bar.set_label("adds to the score, or takes from it", fontsize=8)


def _parts(axes: Axes, explanation: Explanation) -> None:
    values = dict(explanation.parts)
    if explanation.similarity:
        values["similarity term"] = explanation.similarity
    names = list(values)[::-1]
    numbers = [values[name] for name in names]
    bars = axes.barh(names, numbers, color=[_FOR if x >= 0 else _AGAINST for x in numbers])
    axes.bar_label(bars, [f"{x:+.3f}" for x in numbers], padding=3, fontsize=8)
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.margins(x=0.35)
    axes.set_title("the score by what was compared", fontsize=9)


def _unwarping(axes: Axes, times: FloatArray, unwarped: FloatArray) -> None:
    axes.plot(times, unwarped, color=_UNWARPED)
    axes.set_title("the query's times, unwarped", fontsize=9)
    axes.set_xlabel("t")
    axes.set_ylabel("U(t)")
