"""`hashing`: how much of nDCG@10 and recall@10 each way to find candidates keeps, and how many comparisons it saves."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.hash_curve import BITS, LENGTHS, LEVELS, SEEDS, TABLES, WAYS, K, Point, Vectors, curve
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, bold_best, counted, decimals, listed, number, picture, table
from experiments.measured import DIFFERENT, Measured
from experiments.plan import Fit, View
from experiments.result_cells import Result
from neuroseqret.data.relevance import Relevance
from neuroseqret.models.base import Embedder

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {
    "exhaustive": "exhaustive",
    "hyperplanes": "random hyperplanes",
    "paper": "the paper's η1, η2, η3",
    "paper-without-evenness": "without η1 (evenness)",
    "paper-without-saturation": "without η2 (saturation)",
    "paper-without-redundancy": "without η3 (redundancy)",
    "rotation": "ITQ",
    "default": "default objective",
    "trees": "median trees (ours)",
    "multi-probe": "multi-probe (ITQ codes)",
    "cells": "cells (as in the index)",
}
SPACING = 1.5  # least factor between two points of a curve that get a marker
SHARES = (0.1, 0.02)  # shares of the corpus at which the tables read the curves
MEASURES = ("nDCG@10", "recall@10")

#: Presets whose embeddings are hashed, with the folder of their cells and the ways that are measured.
PRESETS = {"default": "hashing", "paper": "hashing+paper"}

Curves = dict[tuple[str, str], list[Point]]


def measure(lab: Lab) -> None:
    """Measure one cell per preset, data set and way, those of a preset and set on the embeddings of the same model."""

    @lru_cache(maxsize=1)
    def embedded(fit: Fit) -> tuple[Vectors, Vectors, Relevance]:
        task = lab.task(fit, View())
        model, _ = lab.fitted(fit)
        assert isinstance(model, Embedder)
        corpus = model.embed(task.corpus, "corpus", unknown_marks="keep")
        return corpus, model.embed(task.queries, "query", unknown_marks="keep"), task.relevance

    def look(fit: Fit, way: str) -> Result:
        return {"points": curve(way, fit.data, *embedded(fit))}

    pieces = []
    for preset, folder in PRESETS.items():
        for data in lab.data:
            fit = Fit(data=data, method="self", preset=preset)
            for way in WAYS if lab.wanted(fit) else ():
                config = lab.piece_config("hashing", fit, way=way)
                pieces.append(Piece(f"{data}/{folder}/{way}", config, partial(look, fit, way)))
    lab.run_pieces(pieces)


def curves(measured: Measured, preset: str = "default") -> Curves:
    """Return the points of a preset's embeddings by data set and way, in the order of the legend."""
    pieces = [(c, r) for c, r in measured.pieces["hashing"] if c["preset"] == preset and "points" in r]
    found = {(c["data"], c["way"]): r["points"] for c, r in pieces}
    return {(data, way): found[data, way] for data in measured.data for way in WAYS if (data, way) in found}


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the figure, and a table for each of `SHARES`."""
    found = curves(measured)
    if not found:
        return f"## Hashing\n\n{NOTHING}"
    if figures is not None:
        _draw(found, figures)
    return "\n\n".join(
        [
            "## Hashing",
            "nDCG@10 of test queries, as a share of exhaustive search (the star), against the factor by which "
            "comparisons are reduced. All ways search the embeddings of `self (default)`, seed 0, corpus seen. The "
            f"bucket methods are the paper's: {TABLES} tables of L bits of a {BITS}-bit code; the union of the query's "
            f"buckets is ranked, and varying L from 1 to {LENGTHS[-1]} makes the curve. Median trees have a tree of "
            f"{LEVELS} bits for every table instead, of which L are used. The paper's objective has the "
            "weights η of the paper's table, or equal ones for a set that is not in it; an ablation scales the "
            "remaining weights to the same sum. Multi-probe visits further buckets, and cells are inverted lists with "
            "centres; for both, varying the number of wanted candidates makes the curve. Comparing with a centre "
            f"counts, comparing codes does not. A curve ends where fewer than {K} sequences are compared, or where all "
            "bits are in use: a curve that ends early has many sequences with equal codes, which no number of bits can "
            "separate.",
            picture("hashing", "nDCG@10 against the reduction in comparisons, one panel per data set"),
            "nDCG@10 and recall@10 in points at two shares of the corpus compared, read off the curves (linear in the "
            "logarithm of the share); recall is of the ten best of exhaustive search. Curves of "
            f"{listed([NAMES[way] for way in SEEDS])} are means over {max(SEEDS.values())} seeds of the hash. A "
            "dash means that a curve does not reach this share or is not measured. Where two ways are compared, a "
            "curve that does not reach the share counts as lower, and a set where neither reaches it is left out.",
            *(_table(found, share, measure) for share in SHARES for measure in MEASURES),
            *_of_paper(measured),
        ]
    )


def _of_paper(measured: Measured) -> list[str]:
    """Return the same tables for the embeddings of preset `paper`."""
    found = curves(measured, "paper")
    if not found:
        return []
    return [
        "### On the embeddings of `self (paper)`",
        "The same tables, for vectors that the paper's model gives (seed 0, corpus seen).",
        *(_table(found, share, measure) for share in SHARES for measure in MEASURES),
    ]


def _table(found: Curves, share: float, measure: str) -> str:
    names = list(dict.fromkeys(data for data, _ in found))
    ways = [way for way in WAYS if way != "exhaustive" and any(way == measured for _, measured in found)]
    columns = []
    for data in names:
        values = [100 * at_share(found.get((data, way), []), share, measure) for way in ways]
        whole = 100 * at_share(found.get((data, "exhaustive"), []), 1, measure)
        form = f".{decimals([whole, *values])}f"
        columns.append([number(whole, form), *bold_best([number(v, form) for v in values], values)])
    lines = [[NAMES[way], *cells] for way, *cells in zip(["exhaustive", *ways], *columns, strict=True)]
    return table([f"{measure}, {100 * share:g} % compared", *names], lines)


def at_share(points: list[Point], share: float, measure: str = MEASURES[0]) -> float:
    """Return a measure of a curve at a share of comparisons, linear in log(share) between two points.

    NaN if the curve does not reach this share.
    """
    usable = [p for p in points if p["compared"] > 0]
    if not usable or min(p["compared"] for p in usable) > share:
        return float("nan")
    ordered = sorted(usable, key=lambda p: p["compared"])
    x = np.log([p["compared"] for p in ordered])
    return float(np.interp(np.log(share), x, [p[measure] for p in ordered]))


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about hashing, checked at the first of `SHARES`, and our trees everywhere."""
    at = f"with {100 * SHARES[0]:g} % compared"
    learned: list[str] = []
    for preset in PRESETS:
        found = curves(measured, preset)
        objectives = {
            f"{at}, the paper's objective is above hyperplanes on": _above(found, "paper", "hyperplanes"),
            "the default objective is above hyperplanes on": _above(found, "default", "hyperplanes"),
            "ITQ is above hyperplanes on": _above(found, "rotation", "hyperplanes"),
            **{
                f"our median trees are above hyperplanes in {measure} with {100 * share:g} % compared on": _above(
                    found, "trees", "hyperplanes", share, measure
                )
                for share in SHARES
                for measure in MEASURES
            },
            "multi-probe is above ITQ without further buckets on": _above(found, "multi-probe", "rotation"),
        }
        if any(total for _, total in objectives.values()):
            learned.append(f"on the embeddings of `self ({preset})`: {counted(objectives)}")
    return [
        Finding("With equal comparisons, the learned hash is better than random hyperplanes.", "; ".join(learned)),
    ]


def _above(
    found: Curves, first: str, second: str, share: float = SHARES[0], measure: str = MEASURES[0]
) -> tuple[int, int]:
    """Return on how many sets the first is higher, and how many sets at least one of the two curves reaches."""
    pairs = [
        [np.nan_to_num(100 * at_share(found[data, way], share, measure), nan=-1.0) for way in (first, second)]
        for data, measured_way in found
        if measured_way == first and (data, second) in found
    ]
    reached = [(mine, theirs) for mine, theirs in pairs if max(mine, theirs) >= 0]
    return sum(mine - theirs >= DIFFERENT for mine, theirs in reached), len(reached)


def _draw(found: Curves, folder: Path) -> None:
    def panel(axis: Axes, data: str) -> None:
        _curves(axis, {way: points for (d, way), points in found.items() if d == data})

    drawing.draw(folder, "hashing", list(dict.fromkeys(data for data, _ in found)), panel, height=3.3)


def _curves(axis: Axes, ways: dict[str, list[Point]]) -> None:
    whole = at_share(ways.get("exhaustive", []), 1)
    relative = whole > 0  # False while exhaustive search is not measured: there is nothing to compare with
    unit = 100 / whole if relative else 100.0
    for way, points in ways.items():
        shown = [p for p in points if p["compared"] > 0]
        x = [1 / p["compared"] for p in shown]
        y = [unit * p["nDCG@10"] for p in shown]
        if way == "exhaustive":
            axis.plot(x, y, "*", color=drawing.EXHAUSTIVE, markersize=15, zorder=5, label=NAMES[way])
        else:
            drawing.curve(axis, x, y, WAYS.index(way) - 1, NAMES[way], markevery=_spread(x))
    drawing.logarithmic(axis)
    axis.set_xlim(left=0.8)
    axis.margins(y=0.08)
    drawing.label_axes(axis, "times fewer comparisons", f"nDCG@10, {'% of exhaustive' if relative else 'points'}")


def _spread(x: list[float]) -> list[int]:
    """Return the points that get a marker: the last one, and before it those that are not too close to the next."""
    kept: list[int] = []
    for place in range(len(x) - 1, -1, -1):
        if not kept or x[kept[-1]] / x[place] > SPACING:
            kept.append(place)
    return kept[::-1]
