"""The demo's figures: how well each method ranks, how fast it is, and what that means in words."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table

if TYPE_CHECKING:
    from neuroseqret.data.sequences import FloatArray
    from neuroseqret.evaluation.runner import Result

#: What the other methods are called in the table.
NAMES = {
    "random": "random",
    "histogram": "histogram features",
    "histogram-metric": "histogram-metric",
    "udtw": "DTW, exhaustive",
}
OURS = "NeuroSeqRet"


class Speed(NamedTuple):
    """Median milliseconds of one query, asked alone, and how much of it embeds the query (None: nothing does)."""

    whole: float
    embedding: float | None = None


def figures_table(results: list[Result], speed: dict[str, Speed]) -> Table:
    """Return a table with one row per method, the best last."""
    table = Table(box=None, pad_edge=False)
    table.add_column("method")
    for name in ("MAP %", "nDCG@10 %", "MRR %", "ms per query", "of which embedding"):
        table.add_column(name, justify="right")
    for result in sorted(results, key=lambda r: r.mean("AP")):
        ours = result.name not in NAMES
        cells = [f"{100 * result.mean(measure):.1f}" for measure in ("AP", "nDCG@10", "RR")]
        spent = speed.get(OURS if ours else result.name)
        cells += (
            ["", ""] if spent is None else [f"{spent.whole:.1f}", f"{spent.embedding:.1f}" if spent.embedding else ""]
        )
        table.add_row(NAMES.get(result.name, OURS), *cells, style="bold" if ours else None)
    return table


def verdict(results: list[Result], speed: dict[str, Speed]) -> list[str]:
    """Say in words whether the model is better than the other methods, and how fast the index is."""
    import numpy as np

    from neuroseqret.evaluation.significance import randomisation_test

    ours = next(r for r in results if r.name not in NAMES)
    best = max((r for r in results if r.name in NAMES), key=lambda r: r.mean("AP"))
    assert ours.answers is not None
    assert best.answers is not None
    p = float(np.ravel(randomisation_test(ours.answers.measures["AP"], best.answers.measures["AP"]))[0])
    gain = 100 * (ours.mean("AP") - best.mean("AP"))
    other = NAMES[best.name]
    ratio = speed["udtw"].whole / speed[OURS].whole
    if gain > 0 and p < 0.05:
        found = f"The model beats {other}, the best of the other methods, by {gain:.1f} points of MAP (p = {p:.2g})."
    else:
        found = f"The model does NOT clearly beat {other} ({gain:+.1f} points of MAP, p = {p:.2g})."
    return [found, f"Asked one query at a time, the index is {ratio:.1f} times as fast as DTW (median)."]


def typical_queries(groups: Sequence[str], precision: Sequence[float] | FloatArray) -> list[int]:
    """Return the query of median average precision of three groups: the hardest, the median and the easiest one.

    A group is as hard as the mean average precision of its queries is low.

    >>> typical_queries(["a", "b", "a", "a", "c", "d"], [0.9, 0.2, 0.1, 0.5, 0.4, 0.3])
    [1, 5, 3]
    """
    rows: dict[str, list[int]] = {}
    for row in sorted(range(len(groups)), key=lambda row: (float(precision[row]), row)):
        rows.setdefault(groups[row], []).append(row)
    order = sorted(rows, key=lambda group: (fmean(float(precision[row]) for row in rows[group]), group))
    chosen = dict.fromkeys((order[0], order[(len(order) - 1) // 2], order[-1]))
    return [rows[group][(len(rows[group]) - 1) // 2] for group in chosen]
