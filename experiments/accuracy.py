"""`accuracy`: how well every method ranks, on every data set, in both protocols, with the corpus seen and unseen."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments import data_statistics, paper_values, plan, second_stages, troubles
from experiments.lab import Lab
from experiments.markdown import (
    MISSING,
    Finding,
    counted,
    details,
    listed,
    measured_table,
    number,
    of,
    point_column,
    table,
)
from experiments.measured import DIFFERENT, LEVEL, Measured, Row, label, row_fit
from experiments.plan import View
from neuroseqret.evaluation.significance import holm
from neuroseqret.methods.registry import BASELINES, MODELS

SIMPLE = ("random", "histogram", "histogram-metric", "gru")  # not among the paper's nine baselines
SERIES, PROCESSES = ("mass", "udtw", "sharp"), ("rmtpp", "sahp", "thp")
NINE = [name for name in BASELINES if name not in SIMPLE]
NAMES = {"AP": "MAP", "nDCG@10": "nDCG@10", "RR": "RR", "nDCG@20": "nDCG@20"}
WHAT = {
    "full": "the whole corpus ranked",
    "sampled": "all relevant and up to 1000 other sequences ranked, as in the paper",
}
CONDITIONS = [(corpus, view) for corpus in plan.CORPORA for view in (View(), View(protocol="sampled"))]


def measure(lab: Lab) -> None:
    """Fit and ask every method; `queries`, `lengths` and `runtime` use the same cells."""
    data_statistics.measure(lab)
    lab.run([fit for fit in plan.accuracy(lab.data, lab.seeds) if lab.wanted(fit)])


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return MAP in all four conditions and the other measures in the first; the rest opens on a click."""
    shown = [("AP", *condition) for condition in CONDITIONS]
    shown += [(name, *CONDITIONS[0]) for name in NAMES if name != "AP"]
    rest = [(name, *condition) for name in NAMES if name != "AP" for condition in CONDITIONS[1:]]
    parts = [
        "## Accuracy",
        "All values are in points (hundredths): the mean over queries, then mean ± standard deviation over seeds. The "
        "best value of a column is bold. ▲ and ▼ mark a model that is significantly above or below the best baseline "
        "of the column (paired randomisation test over queries on values averaged over seeds, p ≤ 0.05 after Holm's "
        "correction over all methods and data sets of the table). Only MAP and nDCG@10 of the full protocol are kept "
        "query by query, so only these tables have marks. A value without a deviation comes from one seed; "
        f"{listed(sorted(plan.DETERMINISTIC))} are not trained and always have one. On a corpus of about a thousand "
        "sequences or fewer, as half a corpus often is, the two protocols rank nearly the same candidates. With the "
        "corpus unseen, methods learn from one half of the corpus and rank the other. If a group has several "
        "recordings (`source`), each of them is in one half only; if it has a single one, that is divided.",
        *(accuracy_table(measured, *which) for which in shown),
        details("The other measures in the other conditions", "\n\n".join(accuracy_table(measured, *w) for w in rest)),
        second_stages.report(measured),
        beside_the_paper(measured),
        troubles.report(measured),
    ]
    return "\n\n".join(filter(None, parts))


def accuracy_table(measured: Measured, measure: str, corpus: str, view: View) -> str:
    """Return a table with one row per method and one column per data set."""
    rows, signs = plan.rows(), marks(measured, measure, corpus, view)
    columns = []
    for data in measured.data:
        fits = [row_fit(data, row, corpus) for row in rows]
        cells = point_column([measured.values(fit, view, measure) for fit in fits])
        cells = ["failed" if measured.failed(fit, view) else cell for fit, cell in zip(fits, cells, strict=True)]
        columns.append([cell + signs.get((data, row), "") for cell, row in zip(cells, rows, strict=True)])
    lines = [[label(row), *cells] for row, *cells in zip(rows, *columns, strict=True)]
    shown = measured_table(["method", *measured.data], lines)
    title = f"### {NAMES[measure]}: {WHAT[view.protocol]}; corpus {corpus} in training"
    return "\n\n".join(filter(None, [title, shown, _incomplete(measured, corpus, view, MISSING in shown)]))


def _incomplete(measured: Measured, corpus: str, view: View, dashes: bool) -> str:
    """Return how many of the runs were measured, if not all."""
    planned = {row: 1 if row[0] in plan.DETERMINISTIC else measured.seeds for row in plan.rows()}
    done = sum(
        min(len(measured.answered(row_fit(data, row, corpus), view)), seeds)
        for data in measured.data
        for row, seeds in planned.items()
    )
    every = len(measured.data) * sum(planned.values())
    missing = f"; {MISSING}: not measured" if dashes else ""
    return f"{of(done, every)} runs (one per set, method and seed) are measured{missing}." if done < every else ""


@lru_cache(maxsize=8)  # the tests take seconds, and several sections need the same marks
def marks(measured: Measured, measure: str, corpus: str, view: View) -> dict[tuple[str, Row], str]:
    """Return the marks of the models against the best baseline of each data set, corrected over all methods."""
    pairs = []
    for data in measured.data:
        if best := measured.baselines(data, view, corpus, measure)[:1]:
            pairs += [(data, row, row_fit(data, (best[0], "default"), corpus)) for row in plan.rows()]
    fits = [(row_fit(data, row, corpus), best) for data, row, best in pairs]
    p = holm(measured.p_values(fits, view, measure))
    return {
        (data, row): "▲" if measured.mean(fit, view, measure) > measured.mean(best, view, measure) else "▼"
        for (data, row, best), (fit, _), value in zip(pairs, fits, p, strict=True)
        if row[0] in MODELS and value <= LEVEL
    }


def beside_the_paper(measured: Measured) -> str:
    """Return the paper's MAP beside ours, in the paper's protocol."""
    view = View(protocol="sampled")
    rows: list[Row] = [("rank-thp", "default"), *((m, p) for p in plan.PRESETS for m in MODELS)]
    shared = [data for data in measured.data if data in paper_values.SETS]
    if not shared:
        return ""
    lines = [
        [f"paper: {name}", *(number(paper_values.value(paper_values.MAP, name, data)) for data in shared)]
        for name in paper_values.MAP
    ]
    lines += [
        [f"here: {label(row)}", *(number(measured.mean(row_fit(data, row), view)) for data in shared)] for row in rows
    ]
    return "\n\n".join(
        [
            "### MAP beside the paper's",
            "In the paper's protocol. The sets have the names and the kinds of events of the paper's sets, but other "
            "sources, sizes, groups and shares of relevant sequences. Only the order of the rows can be compared.",
            table(["", *shared], lines),
        ]
    )


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about its tables of accuracy, checked in its protocol."""
    view = View(protocol="sampled")
    second = {
        f"`cross ({preset})` is above `self ({preset})` on": measured.above(("cross", preset), ("self", preset), view)
        for preset in plan.PRESETS
    }
    ranked = {
        f"`rank-{name}` is above `{name}` on": measured.above((f"rank-{name}", "default"), (name, "default"), view)
        for name in PROCESSES
    }
    both = [data for data in measured.data if {*SERIES, *PROCESSES} <= {*measured.baselines(data, view)}]
    series, processes = (_mean_of(measured, both, names, view) for names in (SERIES, PROCESSES))
    equal = (
        f"the mean over methods and the {len(both)} sets that have all of them is {number(series)} for time-series "
        f"methods and {number(processes)} for point processes"
    )
    return [
        Finding(
            "SelfAttn and CrossAttn rank above all nine baselines, except for Rank-THP on Twitter (MAP).",
            _above_baselines(measured, view),
        ),
        Finding("CrossAttn is above SelfAttn on all sets (MAP, every candidate scored by it).", counted(second)),
        _hashed(measured, view),
        Finding(
            "Point processes that are trained for ranking are above the same ones without that, on all sets.",
            counted(ranked),
        ),
        Finding(
            "Time-series methods and point processes without training for ranking are about equal.",
            "" if np.isnan(series + processes) else equal,
        ),
    ]


def _above_baselines(measured: Measured, view: View) -> str:
    found = []
    for row in (row for row in plan.rows() if row[0] in ("self", "cross")):
        (nine, _), (every, sets) = (above_all(measured, row, names, view) for names in (NINE, list(BASELINES)))
        if sets:
            found.append(f"`{label(row)}` {nine} and {of(every, sets)}")
    head = (
        f"sets on which a model is above the best of the nine, and above the best of all {len(BASELINES)} baselines: "
    )
    return head + ", ".join(found) if found else ""


def _hashed(measured: Measured, view: View) -> Finding:
    """Check a claim: the paper calls the loss of Hash-CrossAttn significant, and its tables show none."""
    paper = [a - b for a, b in zip(paper_values.MAP["Hash-CrossAttn"], paper_values.MAP["CrossAttn"], strict=True)]
    found = []
    for preset in plan.PRESETS:
        gains = measured.gains(("hash-cross", preset), ("cross", preset), view)
        if gains:
            low, high = (choose(gains, key=lambda data: gains[data]) for choose in (min, max))
            below = of(sum(gain <= -DIFFERENT for gain in gains.values()), len(gains))
            found.append(
                f"`hash-cross ({preset})` minus `cross ({preset})` is {number(gains[low], '+.1f')} ({low}) to "
                f"{number(gains[high], '+.1f')} ({high}); it is below on {below} sets"
            )
    return Finding(
        "Hash-CrossAttn is significantly worse than CrossAttn in exchange for its speed (introduction). In the paper's "
        f"tables the two are about equal: their MAP differs by at most {max(map(abs, paper)):.1f} points.",
        "; ".join(found),
    )


def above_all(measured: Measured, row: Row, others: list[str], view: View, corpus: str = "seen") -> tuple[int, int]:
    """Return on how many sets a row has a higher MAP than all others, and on how many all of them were measured."""
    won, sets = 0, 0
    for data in measured.data:
        mine = measured.mean(row_fit(data, row, corpus), view)
        theirs = [b for b in measured.baselines(data, view, corpus) if b in others]
        if not np.isnan(mine) and len(theirs) == len(others):
            sets += 1
            won += mine - measured.mean(row_fit(data, (theirs[0], "default"), corpus), view) >= DIFFERENT
    return int(won), sets


def _mean_of(measured: Measured, sets: list[str], names: tuple[str, ...], view: View) -> float:
    means = [measured.mean(row_fit(data, (name, "default")), view) for data in sets for name in names]
    return float(np.mean(means)) if means else float("nan")
