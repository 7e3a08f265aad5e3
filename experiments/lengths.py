"""`lengths`: queries cut to 10-50 and 50-100 events; the cells are those of `accuracy`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments import accuracy, plan
from experiments.cutting import Cut
from experiments.lab import Lab
from experiments.markdown import MISSING, Finding, counted, decimals, number, point_column, table
from experiments.measured import DIFFERENT, Measured, Row, label, row_fit
from experiments.plan import View

TITLES: dict[Cut, str] = {"10-50": "10 to 50 events", "50-100": "50 to 100 events"}
ROWS = [row for row in plan.rows() if row[0] in plan.SHORTENED]


def measure(lab: Lab) -> None:
    """Measure `accuracy`, which asks with cut queries too."""
    accuracy.measure(lab)


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return one table per length; whole queries are in the accuracy tables."""
    parts = [
        "## Query lengths",
        "MAP in points, with the whole corpus ranked and the corpus seen. In brackets is the difference to whole "
        "queries, whose MAP is in the first accuracy table. A run of Unif(10, 50) or Unif(50, 100) events is cut out "
        "of every test query at a random place, the same for all methods. A shorter query stays whole, so a set of "
        "short sequences changes little. Models and baselines are those of the accuracy tables, trained with whole "
        "queries. (The caption of the paper's table says Unif(10, 50), the head of the table 10 to 20.)",
    ]
    for cut, title in TITLES.items():
        columns = [_column(measured, data, View(queries=cut)) for data in measured.data]
        lines = [[label(row), *cells] for row, *cells in zip(ROWS, *columns, strict=True)]
        parts += [f"### {title.capitalize()}", table(["method", *measured.data], lines)]
    return "\n\n".join(parts)


def _column(measured: Measured, data: str, view: View) -> list[str]:
    values = [measured.values(row_fit(data, row), view) for row in ROWS]
    form = f"+.{decimals([measured.mean(row_fit(data, row), view) for row in ROWS])}f"
    changes = [number(_change(measured, data, row, view), form) for row in ROWS]
    return [
        cell if change == MISSING else f"{cell} ({change})"
        for cell, change in zip(point_column(values), changes, strict=True)
    ]


def _change(measured: Measured, data: str, row: Row, view: View) -> float:
    """Return how much MAP changes when queries are cut, in points."""
    return measured.mean(row_fit(data, row), view) - measured.mean(row_fit(data, row), View())


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about query lengths."""
    lower, above, hashed = {}, {}, []
    rows: tuple[Row, Row] = ("cross", "default"), ("rank-thp", "default")
    for cut, title in TITLES.items():
        view = View(queries=cut)
        changes = [_change(measured, data, row, view) for data in measured.data for row in ROWS]
        changed = [change for change in changes if abs(change) >= DIFFERENT]  # NaN is left out too
        lower[f"with {title}, MAP is lower for"] = sum(change < 0 for change in changed), len(changed)
        above[f"with {title}, `cross (default)` is above `rank-thp` on"] = measured.above(*rows, view)
    for view, title in ((View(), "whole queries"), *((View(queries=cut), title) for cut, title in TITLES.items())):
        gains = measured.gains(("hash-cross", "default"), ("cross", "default"), view)
        if gains:
            hashed.append(f"{number(float(np.mean(list(gains.values()))), '+.1f')} points with {title}")
    pairs_changed = "pairs of method and set whose MAP changes"
    return [
        Finding("The shorter the query, the lower the MAP.", counted(lower, pairs_changed)),
        Finding("CrossAttn is above Rank-THP for short queries too.", counted(above)),
        Finding(
            "With short queries Hash-CrossAttn gains more than with whole ones.",
            f"`hash-cross (default)` minus `cross (default)` is on average {', '.join(hashed)}" if hashed else "",
        ),
    ]
