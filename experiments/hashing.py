"""`hashing`: what the ways to candidates keep of nDCG@10, against how many fewer comparisons they take."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from experiments import drawing
from experiments.hash_curve import BITS, LENGTHS, TABLES, WAYS, K, Point, Vectors, curve
from experiments.lab import Lab, Piece
from experiments.markdown import NOTHING, Finding, bold_best, counted, decimals, number, picture, table
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
    "multi-probe": "multi-probe (ITQ codes)",
    "cells": "cells (as in the index)",
}
SPACING = 1.5  # factor between two points of a curve that have a sign
SHARES = (0.1, 0.02)  # of the corpus compared, at which the tables read the curves

Curves = dict[tuple[str, str], list[Point]]


def measure(lab: Lab) -> None:
    """One cell a data set and way, all on the embeddings of the same model."""

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
    for data in lab.data:
        fit = Fit(data=data, method="self")
        for way in WAYS if lab.wanted(fit) else ():
            config = lab.piece_config("hashing", fit, way=way)
            pieces.append(Piece(f"{data}/hashing/{way}", config, partial(look, fit, way)))
    lab.run_pieces(pieces)


def curves(measured: Measured) -> Curves:
    """Points by data set and way, in the order of the legend."""
    found = {(c["data"], c["way"]): r["points"] for c, r in measured.pieces["hashing"] if "points" in r}
    return {(data, way): found[data, way] for data in measured.data for way in WAYS if (data, way) in found}


def report(measured: Measured, figures: Path | None = None) -> str:
    """The figure, and a table at one share of comparisons."""
    found = curves(measured)
    if not found:
        return f"## Hashing\n\n{NOTHING}"
    if figures is not None:
        _draw(found, figures)
    return "\n\n".join(
        [
            "## Hashing",
            "nDCG@10 of test queries on the embeddings of `self (default)`, seed 0, corpus seen, as a share of that of "
            "exhaustive search (the star), against the factor by which comparisons are fewer. Bucket methods are the "
            f"paper's: {TABLES} tables of L bits of a {BITS}-bit code, the union of the query's buckets is ranked, and "
            f"L, from 1 to {LENGTHS[-1]}, makes the curve. The paper's objective has the weights η of its table on the "
            "sets that it has, equal ones elsewhere; what an ablation leaves is scaled to the same sum. Multi-probe "
            "visits further buckets, cells are inverted lists with centres (comparing with these counts, comparing "
            "codes does not); there the number of wanted candidates makes the curve. A curve ends where fewer than "
            f"{K} sequences are compared, or with all bits in use: one that ends early has many sequences with equal "
            "codes, and no number of bits tells them apart.",
            picture("hashing", "nDCG@10 against the reduction in comparisons, one panel a data set"),
            "nDCG@10 in points at two shares of the corpus compared, read off the curves (linear in the logarithm of "
            "the share); a dash where a curve does not get there. Where two ways are counted against each other, a "
            "curve that does not get there is below one that does, and a set that neither reaches is not counted:",
            *(_table(found, share) for share in SHARES),
        ]
    )


def _table(found: Curves, share: float) -> str:
    names = list(dict.fromkeys(data for data, _ in found))
    ways = [way for way in WAYS if way != "exhaustive"]
    columns = []
    for data in names:
        values = [100 * at_share(found.get((data, way), []), share) for way in ways]
        whole = 100 * at_share(found.get((data, "exhaustive"), []), 1)
        form = f".{decimals([whole, *values])}f"
        columns.append([number(whole, form), *bold_best([number(v, form) for v in values], values)])
    lines = [[NAMES[way], *cells] for way, *cells in zip(["exhaustive", *ways], *columns, strict=True)]
    return table([f"{100 * share:g} % compared", *names], lines)


def at_share(points: list[Point], share: float) -> float:
    """nDCG@10 of a curve at a share of comparisons, between two points linear in log(share); NaN where it does not
    get there."""
    usable = [p for p in points if p["compared"] > 0]
    if not usable or min(p["compared"] for p in usable) > share:
        return float("nan")
    ordered = sorted(usable, key=lambda p: p["compared"])
    x = np.log([p["compared"] for p in ordered])
    return float(np.interp(np.log(share), x, [p["nDCG@10"] for p in ordered]))


def findings(measured: Measured) -> list[Finding]:
    """The paper's statements on hashing, at the first of the shares."""
    found = curves(measured)

    def above(first: str, second: str) -> tuple[int, int]:
        """Sets where the first is higher, of those where one gets there; a curve that does not is below."""
        pairs = [
            [np.nan_to_num(100 * at_share(found.get((data, way), []), SHARES[0]), nan=-1.0) for way in (first, second)]
            for data in measured.data
        ]
        reached = [(mine, theirs) for mine, theirs in pairs if max(mine, theirs) >= 0]
        return sum(mine - theirs >= DIFFERENT for mine, theirs in reached), len(reached)

    at = f"with {100 * SHARES[0]:g} % compared"
    learned = {
        f"{at} the paper's objective is above hyperplanes on": above("paper", "hyperplanes"),
        "the default objective is above hyperplanes on": above("default", "hyperplanes"),
        "ITQ is above hyperplanes on": above("rotation", "hyperplanes"),
        "multi-probe is above ITQ without further buckets on": above("multi-probe", "rotation"),
    }
    terms = {
        f"the whole objective is above itself {NAMES[way]} on": above("paper", way)
        for way in WAYS
        if way.startswith("paper-")
    }
    return [
        Finding("At equal comparisons the learned hash keeps more than random hyperplanes.", counted(learned)),
        Finding("Each of the objective's terms helps, η1 most.", f"{at} {counted(terms)}" if counted(terms) else ""),
    ]


def _draw(found: Curves, folder: Path) -> None:
    names = list(dict.fromkeys(data for data, _ in found))
    figure, axes = drawing.panels(len(names), height=3.3)
    for axis, data in zip(axes, names, strict=True):
        _panel(axis, {way: points for (d, way), points in found.items() if d == data})
        axis.set_title(data, fontsize=11)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_xlim(left=0.8)
        axis.margins(y=0.08)
        axis.set_xlabel("times fewer comparisons", fontsize=9)
    drawing.legend(figure, drawing.named_lines(axes))
    drawing.save(figure, folder, "hashing")


def _panel(axis: Axes, ways: dict[str, list[Point]]) -> None:
    whole = at_share(ways.get("exhaustive", []), 1)
    relative = whole > 0  # else there is nothing to compare with, as long as exhaustive search is not measured
    unit = 100 / whole if relative else 100.0
    axis.set_ylabel(f"nDCG@10, {'% of exhaustive' if relative else 'points'}", fontsize=9)
    for way, points in ways.items():
        shown = [p for p in points if p["compared"] > 0]
        x = [1 / p["compared"] for p in shown]
        y = [unit * p["nDCG@10"] for p in shown]
        if way == "exhaustive":
            axis.plot(x, y, "*", color="#B00020", markersize=15, zorder=5, label=NAMES[way])
        else:
            place = WAYS.index(way) - 1
            marker, size = drawing.MARKERS[place]
            axis.plot(x, y, color=drawing.COLOURS[place], linestyle=drawing.DASHES[place], linewidth=1.3, marker=marker,
                      markersize=size, markevery=_spread(x), label=NAMES[way])  # fmt: skip


def _spread(x: list[float]) -> list[int]:
    """Points that get a sign: the last, and before it those that are not too near to the one after."""
    kept: list[int] = []
    for place in range(len(x) - 1, -1, -1):
        if not kept or x[kept[-1]] / x[place] > SPACING:
            kept.append(place)
    return kept[::-1]
