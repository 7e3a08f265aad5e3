"""Draw the pictures of docs/concepts.md: `python docs/site_tools/figures.py [NAME...]`.

Most of what they show is computed by the library from simulated data; the cells and the scores of windows are drawn
by hand to show the idea.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import neuroseqret as nsr
from neuroseqret.measures.ranking_measures import average_precision, ndcg
from neuroseqret.methods.registry import make

OUT = Path(__file__).parents[1] / "figures"
INK, QUIET, FAINT, GOOD = "#1b1f24", "#6b7280", "#d1d5db", "#00785a"
#: Colour and shape of the marks, so that neither is needed alone; safe for colour-blind readers.
MARKS = (("#2c5fa8", "o"), ("#c8590c", "s"), ("#00785a", "^"))
NAMES = ("view", "search", "buy")

matplotlib.rcParams.update({"font.size": 10, "text.color": INK, "savefig.dpi": 130, "font.family": "DejaVu Sans"})


def sequence(rng: np.random.Generator, shares: list[float], gap: float, events: int) -> tuple[Any, Any]:
    """Return times and marks of a simulated sequence."""
    times = rng.gamma(2.0, gap / 2, events).cumsum()
    return times - times[0], rng.choice(3, events, p=shares)


def time_line(axis: Axes, times: Any, marks: Any, height: float, size: float = 52.0) -> None:
    axis.plot([times[0], times[-1]], [height, height], color=FAINT, linewidth=1.4, zorder=1)
    for mark, (colour, shape) in enumerate(MARKS):
        chosen = marks == mark
        axis.scatter(times[chosen], np.full(chosen.sum(), height), s=size, c=colour, marker=shape, zorder=2)


def bare(axis: Axes) -> Axes:
    axis.set_xticks([])
    axis.set_yticks([])
    axis.spines[:].set_visible(False)
    return axis


def note(axis: Axes, text: str, x: float, y: float, **style: Any) -> None:
    axis.text(x, y, text, **{"color": QUIET, "size": 9.5, "va": "center", **style})


def save(figure: Figure, name: str) -> None:
    figure.savefig(OUT / f"concepts-{name}.png", bbox_inches="tight", pad_inches=0.12, facecolor="white")
    print(OUT / f"concepts-{name}.png")


def sequences() -> None:
    """Three sequences on a time line, with the words for their parts."""
    rng = np.random.default_rng(3)
    figure = Figure(figsize=(9.6, 2.9))
    axis = bare(figure.subplots())
    rows = [([0.6, 0.3, 0.1], 1.0, 17), ([0.6, 0.3, 0.1], 1.1, 15), ([0.2, 0.2, 0.6], 2.3, 7)]
    for height, (shares, gap, events) in zip((2, 1, 0), rows, strict=True):
        times, marks = sequence(rng, shares, gap, events)
        time_line(axis, times, marks, height)
        label = f"session {'abc'[2 - height]}"
        axis.text(-1.0, height + 0.10, label, ha="right", va="center", weight="bold", size=10)
        note(axis, "group: browser" if height else "group: regular", -1.0, height - 0.22, ha="right", size=8.5)
        if height == 2:
            left, right = times[4], times[5]
            axis.annotate("", (left, 2.3), (right, 2.3), arrowprops={"arrowstyle": "<->", "color": QUIET})
            note(axis, "gap", (left + right) / 2, 2.52, ha="center")
    axis.annotate("time →", (0, -0.62), (0, -0.62), color=QUIET, size=9.5)
    for mark, (colour, shape) in enumerate(MARKS):
        axis.scatter([5.2 + 4.0 * mark], [-0.55], s=52, c=colour, marker=shape)
        note(axis, f"mark: {NAMES[mark]}", 5.6 + 4.0 * mark, -0.55)
    axis.set_xlim(-4.2, 18.5)
    axis.set_ylim(-0.85, 2.8)
    save(figure, "sequences")


def relevance() -> None:
    """Three ways to say what is relevant: groups, judged pairs, parts of one sequence."""
    rng = np.random.default_rng(5)
    figure = Figure(figsize=(9.6, 2.5))
    axes = figure.subplots(1, 3)
    titles = ("the same group", "pairs that you name", "parts of the same sequence")
    for axis, title in zip(axes, titles, strict=True):
        bare(axis).set_title(title, size=10.5, weight="bold", color=INK)
        axis.set_xlim(-3.2, 10.8)
        axis.set_ylim(-0.7, 2.6)
    labels = (("query", "browser"), ("c1", "browser"), ("c2", "regular"))
    for column in (0, 1):
        for height, (name, group) in zip((2, 1, 0), labels, strict=True):
            shares = [0.7, 0.2, 0.1] if group == "browser" else [0.1, 0.2, 0.7]
            times, marks = sequence(rng, shares, 0.8 if group == "browser" else 1.4, 10 if group == "browser" else 7)
            time_line(axes[column], times, marks, height, 26)
            note(axes[column], group if column == 0 else name, -0.5, height, ha="right")
    axes[0].annotate("", (10.3, 1.0), (10.3, 2.0), arrowprops={"arrowstyle": "-|>", "color": GOOD, "lw": 1.6})
    axes[1].annotate("", (10.3, 0.0), (10.3, 2.0), arrowprops={"arrowstyle": "-|>", "color": GOOD, "lw": 1.6})
    note(axes[1], "grade 1", 10.1, 0.55, ha="right", color=GOOD)
    times, marks = sequence(rng, [0.5, 0.3, 0.2], 0.5, 20)
    time_line(axes[2], times, marks, 1.5, 26)
    spans = ((0, 6, "query"), (7, 12, "left out"), (13, 19, "relevant"))
    for begin, end, name in spans:
        colour = GOOD if name != "left out" else QUIET
        axes[2].plot(times[[begin, begin, end, end]], [1.1, 0.95, 0.95, 1.1], color=colour, linewidth=1.4)
        note(
            axes[2],
            name,
            (times[begin] + times[end]) / 2,
            0.3 if name == "left out" else 0.65,
            ha="center",
            color=colour,
        )
    save(figure, "relevance")


def embedding() -> None:
    """Sequences of six groups as points: the metric puts what is relevant to each other side by side."""
    data = nsr.simulate(groups=6, per_group=40, queries_per_group=12, seed=4)
    model = nsr.SelfAttention().fit(data.queries, data.corpus, data.relevance, max_seconds=20)
    histogram = make("histogram").fit(data.queries, data.corpus, data.relevance)
    figure = Figure(figsize=(9.6, 3.7))
    axes = figure.subplots(1, 2)
    groups = np.array(data.corpus.groups)
    for axis, method, title in (
        (axes[0], histogram, "histograms of marks and gaps"),
        (axes[1], model, "embeddings of a trained model"),
    ):
        vectors = method.embed(data.corpus)
        query = data.queries[data.test][0]
        centre = vectors.mean(0)
        directions = np.linalg.svd(vectors - centre, full_matrices=False)[2][:2].T
        places, asked = (vectors - centre) @ directions, (method.embed(query) - centre) @ directions
        for number, group in enumerate(sorted(set(groups))):
            chosen = groups == group
            colour = matplotlib.colormaps["tab10"](number)
            axis.scatter(*places[chosen].T, s=18, color=colour, alpha=0.8, linewidths=0)
            if group == query.group:
                asked_colour = colour
        axis.scatter(*asked.ravel(), s=230, marker="*", color=[asked_colour], edgecolors=INK, linewidths=1.1, zorder=3)
        bare(axis).set_title(title, size=10.5, weight="bold")
        axis.spines[:].set_visible(True)
        axis.spines[:].set_color(FAINT)
    save(figure, "embedding")


def candidates() -> None:
    """Cells: the query is compared with the rows of the nearest cells only."""
    rng = np.random.default_rng(8)
    centres = rng.uniform(0, 1, (16, 2)) * (1.6, 1.0)
    points = np.concatenate([rng.normal(centre, 0.07, (22, 2)) for centre in centres])
    query = np.array([0.78, 0.42])
    cell = np.linalg.norm(points[:, None] - centres, axis=2).argmin(1)
    visited = np.linalg.norm(centres - query, axis=1).argsort()[:3]
    figure = Figure(figsize=(9.6, 3.4))
    axes = figure.subplots(1, 2)
    near = np.linalg.norm(points - query, axis=1).argsort()[:5]
    for axis, compared, title in (
        (axes[0], np.full(len(points), True), "exhaustive"),
        (axes[1], np.isin(cell, visited), "cells"),
    ):
        axis.scatter(*points[~compared].T, s=13, color=FAINT, linewidths=0)
        axis.scatter(*points[compared].T, s=13, color=MARKS[0][0], linewidths=0)
        axis.scatter(*points[near].T, s=60, facecolors="none", edgecolors=GOOD, linewidths=1.5)
        axis.scatter(*query, s=230, marker="*", color="#f0b36e", edgecolors=INK, linewidths=1.1, zorder=3)
        bare(axis).set_title(f"{title}: {compared.sum()} of {len(points)} compared", size=10.5, weight="bold")
        axis.spines[:].set_visible(True)
        axis.spines[:].set_color(FAINT)
    axes[1].scatter(*centres.T, marker="+", s=50, color=QUIET, linewidths=1.2)
    save(figure, "candidates")


def measures() -> None:
    """Three rankings of the same three relevant sequences, with their AP, nDCG@10 and RR."""
    figure = Figure(figsize=(9.6, 2.2))
    axis = bare(figure.subplots())
    relevant = ((1, 2, 3), (1, 5, 9), (4, 5, 6))
    for rank in range(1, 13):
        note(axis, str(rank), rank, 3.0, ha="center")
    note(axis, "rank", 0.1, 3.0, ha="right")
    for height, ranks in zip((2, 1, 0), relevant, strict=True):
        found = np.isin(np.arange(1, 13), ranks)
        scores, relevance = -np.arange(12.0)[None], nsr.Relevance(np.array([0, 3]), np.flatnonzero(found), 12)
        for rank, good in enumerate(found, 1):
            colour, text = (GOOD, "✓") if good else ("#eef0f2", "")
            axis.scatter([rank], [height], s=330, marker="s", color=colour)
            axis.text(rank, height, text, color="white", ha="center", va="center", weight="bold")
        ap, gain = average_precision(scores, relevance)[0], ndcg(scores, relevance, 10)[0]
        note(axis, f"AP {100 * ap:.0f}    nDCG@10 {100 * gain:.0f}    RR {100 / ranks[0]:.0f}", 12.9, height, color=INK)
    axis.set_xlim(-0.6, 17.6)
    axis.set_ylim(-0.6, 3.3)
    save(figure, "measures")


def windows() -> None:
    """A long sequence cut into windows; the best window of each sequence is the hit."""
    rng = np.random.default_rng(11)
    figure = Figure(figsize=(9.6, 2.0))
    axis = bare(figure.subplots())
    times, marks = sequence(rng, [0.5, 0.3, 0.2], 0.5, 36)
    time_line(axis, times, marks, 1.4, 34)
    note(axis, "a long sequence", -0.4, 1.4, ha="right")
    note(axis, "its windows", -0.4, 0.55, ha="right")
    for number, begin in enumerate(range(0, 30, 6)):
        end, level = min(begin + 11, 35), 0.8 - 0.5 * (number % 2)
        best = number == 2
        colour = GOOD if best else QUIET
        axis.plot(times[[begin, end]], [level, level], color=colour, linewidth=4.5 if best else 2.2)
        text = "0.91: the hit" if best else f"{(0.32, 0.55, 0, 0.71, 0.28)[number]:.2f}"
        note(axis, text, (times[begin] + times[end]) / 2, level - 0.2, ha="center", size=8.5, color=colour)
    axis.set_xlim(-4, times[-1] + 0.5)
    axis.set_ylim(-0.1, 1.7)
    save(figure, "windows")


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["sequences", "relevance", "candidates", "measures", "windows", "embedding"]
    for name in chosen:
        globals()[name]()
