"""`accuracy`: how well every method ranks, on every data set, by both protocols, with the corpus seen and unseen."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuroseqret.evaluation.significance import holm
from neuroseqret.experiments import paper_values, plan, second_stages
from neuroseqret.experiments.lab import QUIET, SECOND_STAGE, SECOND_STAGES, Lab
from neuroseqret.experiments.markdown import (
    MISSING,
    Finding,
    bold_best,
    counted,
    details,
    listed,
    measured_table,
    number,
    of,
    points,
    table,
)
from neuroseqret.experiments.measured import LEVEL, Measured, Row, label, row_fit
from neuroseqret.experiments.plan import Fit, View
from neuroseqret.methods import BASELINES, MODELS

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
        "methods and data sets of the table). Values a query are kept for MAP and nDCG@10 of the full protocol, so "
        "only these tables have marks. A value without a deviation is of one seed, or of a method that no seed changes "
        f"({listed(sorted(plan.DETERMINISTIC))}). On a corpus of about a thousand sequences or fewer, as half a corpus "
        "often is, both protocols rank nearly the same. With the corpus unseen half of it is learned from and the "
        "other half ranked; recordings (`source`) are kept on one side where a group has several, and divided where it "
        "has only one.",
        *(accuracy_table(measured, *which) for which in shown),
        details("The other measures in the other conditions", "\n\n".join(accuracy_table(measured, *w) for w in rest)),
        failures(measured),
        disturbed(measured),
        second_stages.report(measured),
        beside_the_paper(measured),
    ]
    return "\n\n".join(filter(None, parts))


def accuracy_table(measured: Measured, measure: str, corpus: str, view: View) -> str:
    """Rows methods, columns data sets."""
    rows, signs = plan.rows(), marks(measured, measure, corpus, view)
    columns = []
    for data in measured.data:
        fits = [row_fit(data, row, corpus) for row in rows]
        means = [measured.mean(fit, view, measure) for fit in fits]
        cells = [
            "failed" if measured.failed(fit, view) else points(measured.values(fit, view, measure)) for fit in fits
        ]
        columns.append([c + signs.get((data, r), "") for c, r in zip(bold_best(cells, means), rows, strict=True)])
    lines = [[label(row), *cells] for row, *cells in zip(rows, *columns, strict=True)]
    planned = len(measured.data) * sum(1 if m in plan.DETERMINISTIC else measured.seeds for m, _ in rows)
    done = sum(len(measured.answered(row_fit(d, row, corpus), view)) for d in measured.data for row in rows)
    shown = measured_table(["method", *measured.data], lines)
    missing = f"; {MISSING}: not measured" if MISSING in shown else ""
    return "\n\n".join(
        [
            f"### {NAMES[measure]}: {WHAT[view.protocol]}; corpus {corpus} in training",
            shown,
            f"{of(done, planned)} runs, with {measured.seeds} seeds each, are measured{missing}.",
        ]
    )


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


def failures(measured: Measured) -> str:
    """Why cells failed, one line a reason."""
    reasons: dict[tuple[str, str, str], int] = {}
    for (fit, _), by_seed in measured.results.items():
        for result in by_seed.values():
            if "error" in result:
                key = (_label(fit), fit.data, result["error"])
                reasons[key] = reasons.get(key, 0) + 1
    lines = [f"- {name} on {data} ({count} cells): {why}" for (name, data, why), count in sorted(reasons.items())]
    return "\n".join(["Failed:", "", *lines]) if lines else ""


def disturbed(measured: Measured) -> str:
    """What used up its seconds while other work took a part of its core, so that they were worth less than others'."""
    found = set()
    for (fit, view), by_seed in measured.results.items():
        for seed, result in by_seed.items():
            wall, cpu = result.get("fit_seconds", 0.0), result.get("fit_cpu_seconds", 0.0)
            budget = result["max_seconds"] * (1 + SECOND_STAGE * (fit.method in SECOND_STAGES))
            if view == View() and wall > 0.95 * budget and cpu < QUIET * wall:
                found.add(f"{_label(fit)} on {fit.data} (corpus {fit.corpus}, seed {seed}: {cpu / wall:.0%})")
    return (
        f"Trained with less than {QUIET:.0%} of a core, so at a disadvantage: {listed(sorted(found))}." if found else ""
    )


def _label(fit: Fit) -> str:
    return " ".join(filter(None, (label((fit.method, fit.preset)), fit.variant)))


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
    above_baselines = {}
    for row in plan.rows():
        if row[0] in ("self", "cross"):
            name = label(row)
            above_baselines[f"`{name}` is above the best of the nine on"] = _above_all(measured, row, NINE, view)
            above_baselines[f"`{name}` is above all {len(BASELINES)} on"] = _above_all(
                measured, row, list(BASELINES), view
            )
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
            counted(above_baselines),
        ),
        Finding("CrossAttn is above SelfAttn on all sets (MAP, every candidate scored by it).", counted(second)),
        Finding("Point processes trained for ranking are above the same without it, on all sets.", counted(ranked)),
        Finding(
            "Time-series methods and point processes without ranking are about equal.",
            "" if np.isnan(series + processes) else equal,
        ),
    ]


def standing(measured: Measured) -> list[str]:
    """Where the models win and where they do not: one line a model and condition of the full protocol."""
    lines = []
    for corpus in plan.CORPORA:
        signs = marks(measured, "AP", corpus, View())
        for row in plan.rows():
            if row[0] not in MODELS:
                continue
            wins, sets = _above_all(measured, row, list(BASELINES), View(), corpus)
            up, down = ([d for d in measured.data if signs.get((d, row)) == sign] for sign in "▲▼")
            if any(len(measured.values(row_fit(data, row, corpus), View())) for data in measured.data):
                every = f"above every baseline on {of(wins, sets)} sets on which all {len(BASELINES)} were measured; "
                lines.append(
                    f"- `{label(row)}`, corpus {corpus}: MAP {every if sets else ''}against the best measured baseline "
                    f"significantly above on {len(up)}{_names(up)}, below on {len(down)}{_names(down)}."
                )
    return lines


def _names(sets: list[str]) -> str:
    return f" ({', '.join(sets)})" if sets else ""


def _above_all(measured: Measured, row: Row, others: list[str], view: View, corpus: str = "seen") -> tuple[int, int]:
    """On how many sets a row has a higher MAP than all of the others, and on how many all of them were measured."""
    won, sets = 0, 0
    for data in measured.data:
        mine = measured.mean(row_fit(data, row, corpus), view)
        theirs = [b for b in measured.baselines(data, view, corpus) if b in others]
        if not np.isnan(mine) and len(theirs) == len(others):
            sets += 1
            won += mine > measured.mean(row_fit(data, (theirs[0], "default"), corpus), view)
    return int(won), sets


def _mean_of(measured: Measured, sets: list[str], names: tuple[str, ...], view: View) -> float:
    means = [measured.mean(row_fit(data, (name, "default")), view) for data in sets for name in names]
    return float(np.mean(means)) if means else float("nan")
