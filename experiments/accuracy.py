"""`accuracy`: how well every method ranks, on every data set, by both protocols, with the corpus seen and unseen."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from experiments import paper_values, plan, second_stages, troubles
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
    """Fit and ask every method; the same cells serve `queries`, `lengths` and `runtime`."""
    lab.run([fit for fit in plan.accuracy(lab.data, lab.seeds) if lab.wanted(fit)])


def report(measured: Measured, figures: Path | None = None) -> str:
    """MAP in all four conditions and the other measures in the first of them; the rest on a click."""
    shown = [("AP", *condition) for condition in CONDITIONS]
    shown += [(name, *CONDITIONS[0]) for name in NAMES if name != "AP"]
    rest = [(name, *condition) for name in NAMES if name != "AP" for condition in CONDITIONS[1:]]
    parts = [
        "## Accuracy",
        "In points (hundredths): the mean over queries, then mean ± standard deviation over seeds; bold is the best of "
        "a column. ▲ and ▼ mark a model that is significantly above or below the best baseline of that column (paired "
        "randomisation test over queries, values averaged over seeds, p ≤ 0.05 after Holm's correction over all "
        "methods and data sets of the table). Values for each query are kept for MAP and nDCG@10 of the full protocol, "
        "so only these tables have marks. A value without a deviation is of one seed; "
        f"{listed(sorted(plan.DETERMINISTIC))} are not trained and have one only. On a corpus of about a thousand "
        "sequences or fewer, as half a corpus often is, both protocols rank nearly the same. With the corpus unseen "
        "half of it is learned from and the other half ranked; recordings (`source`) are kept on one side where a "
        "group has several, and divided where it has only one.",
        *(accuracy_table(measured, *which) for which in shown),
        details("The other measures in the other conditions", "\n\n".join(accuracy_table(measured, *w) for w in rest)),
        second_stages.report(measured),
        beside_the_paper(measured),
        troubles.report(measured),
    ]
    return "\n\n".join(filter(None, parts))


def accuracy_table(measured: Measured, measure: str, corpus: str, view: View) -> str:
    """Rows methods, columns data sets."""
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
    """How many of the runs are there, if not all."""
    planned = {row: 1 if row[0] in plan.DETERMINISTIC else measured.seeds for row in plan.rows()}
    done = sum(
        min(len(measured.answered(row_fit(data, row, corpus), view)), seeds)
        for data in measured.data
        for row, seeds in planned.items()
    )
    every = len(measured.data) * sum(planned.values())
    missing = f"; {MISSING}: not measured" if dashes else ""
    return f"{of(done, every)} runs (a set, a method, a seed) are measured{missing}." if done < every else ""


@lru_cache(maxsize=8)  # the tests take seconds, and several parts of a page ask for the same
def marks(measured: Measured, measure: str, corpus: str, view: View) -> dict[tuple[str, Row], str]:
    """Signs of the models against the best baseline of each data set; every method takes part in the correction."""
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
    """The paper's MAP beside ours, by its protocol."""
    view = View(protocol="sampled")
    rows: list[Row] = [("rank-thp", "default"), *((m, p) for p in ("paper", "default") for m in MODELS)]
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
            "By the paper's protocol. The sets have the paper's names and kinds of events, not its sequences: other "
            "sources, sizes, groups and shares of relevant sequences, so only the order of rows can be compared.",
            table(["", *shared], lines),
        ]
    )


def findings(measured: Measured) -> list[Finding]:
    """The paper's statements on its tables of accuracy, by its protocol."""
    view = View(protocol="sampled")
    second = {
        f"`cross ({preset})` is above `self ({preset})` on": measured.above(("cross", preset), ("self", preset), view)
        for preset in ("paper", "default")
    }
    ranked = {
        f"`rank-{name}` is above `{name}` on": measured.above((f"rank-{name}", "default"), (name, "default"), view)
        for name in PROCESSES
    }
    both = [data for data in measured.data if {*SERIES, *PROCESSES} <= {*measured.baselines(data, view)}]
    series, processes = (_mean_of(measured, both, names, view) for names in (SERIES, PROCESSES))
    equal = (
        f"the mean over methods and the {len(both)} sets with all of them is {number(series)} for the former, "
        f"{number(processes)} for the latter"
    )
    return [
        Finding(
            "SelfAttn and CrossAttn rank above all nine baselines, but for Rank-THP on Twitter (MAP).",
            _above_baselines(measured, view),
        ),
        Finding("CrossAttn is above SelfAttn on all sets (MAP, every candidate scored by it).", counted(second)),
        _hashed(measured, view),
        Finding("Point processes trained for ranking are above the same without it, on all sets.", counted(ranked)),
        Finding(
            "Time-series methods and point processes without ranking are about equal.",
            "" if np.isnan(series + processes) else equal,
        ),
    ]


def _above_baselines(measured: Measured, view: View) -> str:
    found = []
    for row in (row for row in plan.rows() if row[0] in ("self", "cross")):
        (nine, _), (every, sets) = (above_all(measured, row, names, view) for names in (NINE, list(BASELINES)))
        if sets:
            found.append(f"`{label(row)}` {nine} and {of(every, sets)}")
    head = f"number of sets on which it is above the best of the nine, and of all {len(BASELINES)} baselines: "
    return head + ", ".join(found) if found else ""


def _hashed(measured: Measured, view: View) -> Finding:
    """The paper calls the loss of Hash-CrossAttn significant in its introduction, and shows none in its tables."""
    paper = [a - b for a, b in zip(paper_values.MAP["Hash-CrossAttn"], paper_values.MAP["CrossAttn"], strict=True)]
    found = []
    for preset in ("paper", "default"):
        gains = measured.gains(("hash-cross", preset), ("cross", preset), view)
        if gains:
            low, high = (choose(gains, key=lambda data: gains[data]) for choose in (min, max))
            below = of(sum(gain <= -DIFFERENT for gain in gains.values()), len(gains))
            found.append(
                f"`hash-cross ({preset})` less `cross ({preset})` is {number(gains[low], '+.1f')} ({low}) to "
                f"{number(gains[high], '+.1f')} ({high}), below on {below} sets"
            )
    return Finding(
        "Hash-CrossAttn loses significantly against CrossAttn in exchange for its speed (introduction); in its tables "
        f"the two are about equal, MAP within {max(map(abs, paper)):.1f} points.",
        "; ".join(found),
    )


def above_all(measured: Measured, row: Row, others: list[str], view: View, corpus: str = "seen") -> tuple[int, int]:
    """On how many sets a row has a higher MAP than all of the others, and on how many all of them were measured."""
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
