"""Where the models win and where a baseline wins: the tables of accuracy in short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from experiments import plan
from experiments.accuracy import CONDITIONS, NAMES, NINE, above_all, marks
from experiments.lab import SECOND_STAGE
from experiments.markdown import MISSING, NOTHING, listed, number, of, table
from experiments.measured import DIFFERENT, RANKED, Measured, Row, label, row_fit
from experiments.plan import View
from neuroseqret.baselines.histogram_metric import HistogramMetric
from neuroseqret.methods.registry import BASELINES, MODELS


def report(measured: Measured) -> str:
    """Return the models against the best baseline by MAP, and where a baseline is the best row by any measure."""
    seconds = max((c["max_seconds"] for c in measured.configs if c.get("experiment") != "simulated"), default=0.0)
    return "\n\n".join(
        [
            f"By MAP with the whole corpus ranked. {_best_baselines(measured)} *Above* counts the sets on which a "
            f"model has at least {DIFFERENT} points more than the best of the paper's nine baselines, or of all "
            f"{len(BASELINES)}, among the sets on which all of these were measured. *Significantly* is as in the "
            "tables: against the best baseline that was measured. `cross` and `hash-cross` train for up to "
            f"{(1 + SECOND_STAGE) * seconds:g} s in all, `self` and the baselines for up to {seconds:g} s; "
            f"`histogram-metric` stops by itself after {HistogramMetric().settings.loop.steps:,} steps. The section "
            '"Run time" shows what was really spent.',
            against_the_best(measured),
            "For every measure and condition, the sets on which a baseline is the best row, and how many points it is "
            "above the best of our default models:",
            baselines_on_top(measured),
        ]
    )


def _best_baselines(measured: Measured) -> str:
    found = []
    for corpus in plan.CORPORA:
        best: dict[str, list[str]] = {}
        for data in measured.data:
            for name in measured.baselines(data, View(), corpus)[:1]:
                best.setdefault(name, []).append(data)
        by_number = sorted(best.items(), key=lambda item: -len(item[1]))
        shown = [f"`{name}` on {_few(sets, len(measured.data))}" for name, sets in by_number]
        if shown:
            found.append(f"{listed(shown)} with the corpus {corpus}")
    return f"The best baseline is {', '.join(found)}." if found else ""


def against_the_best(measured: Measured) -> str:
    """Return one row per model and corpus."""
    lines = []
    for corpus in plan.CORPORA:
        signs = marks(measured, "AP", corpus, View())
        for row in (row for row in plan.rows() if row[0] in MODELS):
            known = [d for d in measured.data if measured.answered(row_fit(d, row, corpus), View())]
            if known:
                counts = [above_all(measured, row, names, View(), corpus) for names in (NINE, list(BASELINES))]
                by_sign = [[d for d in known if signs.get((d, row), "") == sign] for sign in ("▲", "▼", "")]
                lines.append(
                    [
                        label(row),
                        corpus,
                        *(of(*count) if count[1] else MISSING for count in counts),
                        *(_sets(sets, len(known)) for sets in by_sign),
                    ]
                )
    head = ["model", "corpus", "above the nine", f"above all {len(BASELINES)}"]
    head += ["significantly above", "significantly below", "no significant difference"]
    return table(head, lines, text=len(head)) if lines else NOTHING


def baselines_on_top(measured: Measured) -> str:
    """Return one row per measure, protocol and corpus: the sets on which a baseline is best."""
    lines = []
    for corpus, view in CONDITIONS:
        for measure, name in NAMES.items():
            ahead = {d: lead(measured, d, corpus, view, measure) for d in measured.data}
            known = {d: found for d, found in ahead.items() if found is not None}
            beaten = [f"{d} ({who} {number(by, '+.1f')})" for d, (who, by) in known.items() if by >= DIFFERENT]
            if known:
                count = f"{of(len(beaten), len(known))}{': ' if beaten else ''}{', '.join(beaten)}"
                lines.append([name, RANKED[view.protocol], corpus, count])
    head = ["measure", "ranked", "corpus", "sets on which a baseline is best"]
    return table(head, lines, text=len(head)) if lines else NOTHING


def lead(measured: Measured, data: str, corpus: str, view: View, measure: str) -> tuple[str, float] | None:
    """Return the best baseline and its points above the best default model; None if one of them is missing."""
    rows: list[Row] = [(name, "default") for name in MODELS]
    models = [measured.mean(row_fit(data, row, corpus), view, measure) for row in rows]
    best = measured.baselines(data, view, corpus, measure)[:1]
    if not best or np.isnan(models).all():
        return None
    return best[0], measured.mean(row_fit(data, (best[0], "default"), corpus), view, measure) - float(np.nanmax(models))


def _few(names: Sequence[str], known: int) -> str:
    """Return the names of sets, or how many they are if there are more than three."""
    if len(names) == known > 1:
        return f"all {known} sets"
    return listed(names) if len(names) < 4 else f"{len(names)} sets"


def _sets(names: Sequence[str], known: int) -> str:
    """Return the names of sets, or `none`, or `all 8`."""
    if not names:
        return "none"
    return f"all {known}" if len(names) == known > 1 else ", ".join(names)
