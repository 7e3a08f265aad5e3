"""`lengths`: queries cut to 10-50 and 50-100 events; the cells are those of `accuracy`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuroseqret.experiments import accuracy, plan
from neuroseqret.experiments.cutting import CUTS, Cut
from neuroseqret.experiments.lab import Lab
from neuroseqret.experiments.markdown import Finding, bold_best, counted, points, table
from neuroseqret.experiments.measured import Measured, label, row_fit
from neuroseqret.experiments.plan import View

TITLES: dict[Cut, str] = {"whole": "whole queries", "10-50": "10 to 50 events", "50-100": "50 to 100 events"}
ROWS = [row for row in plan.rows() if row[0] in plan.SHORTENED]


def measure(lab: Lab) -> None:
    """Nothing of its own: `accuracy` asks with cut queries too."""
    accuracy.measure(lab)


def report(measured: Measured, figures: Path | None = None) -> str:
    """One table a length."""
    parts = [
        "## Query lengths",
        "MAP in points, the whole corpus ranked, corpus seen. A run of Unif(10, 50) or Unif(50, 100) events is cut out "
        "of every test query at a random place, the same for all methods; a query that is shorter stays whole, so a "
        "set of short sequences changes little. Models and baselines are those of the accuracy tables, trained with "
        "whole queries. (The paper's caption says Unif(10, 50), its table's head 10 to 20.)",
    ]
    for cut, title in TITLES.items():
        columns = []
        for data in measured.data:
            values = [measured.values(row_fit(data, row), View(queries=cut)) for row in ROWS]
            means = [float(v.mean()) if len(v) else float("nan") for v in values]
            columns.append(bold_best([points(v) for v in values], means))
        lines = [[label(row), *cells] for row, *cells in zip(ROWS, *columns, strict=True)]
        parts += [f"### {title.capitalize()}", table(["method", *measured.data], lines)]
    return "\n\n".join(parts)


def findings(measured: Measured) -> list[Finding]:
    """The paper's statements on query lengths."""
    lower, above = {}, {}
    for cut in CUTS:
        if cut != "whole":
            pairs = [
                (measured.mean(row_fit(data, row), View(queries=cut)), measured.mean(row_fit(data, row), View()))
                for data in measured.data
                for row in ROWS
            ]
            changed = [short < whole for short, whole in pairs if not np.isnan(short + whole) and short != whole]
            lower[f"with {TITLES[cut]} MAP is lower in"] = sum(changed), len(changed)
            rows = ("cross", "default"), ("rank-thp", "default")
            above[f"with {TITLES[cut]} `cross (default)` is above `rank-thp` on"] = measured.above(
                *rows, View(queries=cut)
            )
    pairs_changed = "pairs of method and set that the cut changes"
    return [
        Finding("The shorter the query, the lower is MAP.", counted(lower, pairs_changed)),
        Finding("CrossAttn is above Rank-THP for short queries too.", counted(above)),
    ]
