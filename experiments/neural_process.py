"""`neural-process`: what the neural point process adds to the default model, corpus unseen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.lab import Lab
from experiments.markdown import NOTHING, decimals, listed, number, points, table
from experiments.measured import LEVEL, Measured, row_fit
from experiments.plan import Fit, View
from experiments.variants import variant_fit
from neuroseqret.evaluation.significance import holm

MEASURES = {"AP": "MAP", "nDCG@10": "nDCG@10"}


def fit_of(data: str, seed: int = 0) -> Fit:
    """Return the fit of preset `neural`."""
    return variant_fit(data, "neural", seed).model_copy(update={"corpus": "unseen"})


def measure(lab: Lab) -> None:
    """Measure preset `neural` with every seed; preset `default` is in `accuracy`."""
    fits = [fit_of(data, seed) for seed in range(lab.seeds) for data in lab.data]
    lab.run([fit for fit in fits if lab.wanted(fit)])


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return both presets side by side, over the seeds that both were measured with."""
    pairs = {data: (fit_of(data), row_fit(data, ("self", "default"), "unseen")) for data in measured.data}
    shared = {data: measured.common_seeds(*pair, View()) for data, pair in pairs.items()}
    sets = [data for data in measured.data if shared[data]]
    if not sets:
        return f"## The neural process\n\n{NOTHING}"
    alike = {data: measured.with_seeds(shared[data]) for data in sets}
    p = holm(np.array([alike[d].p_values([pairs[d]], View(), m)[0] for d in sets for m in MEASURES]))
    lines: list[list[str]] = []
    better: list[str] = []
    worse: list[str] = []
    for place, data in enumerate(sets):
        cells = [data, str(len(shared[data]))]
        for m, (measure, name) in enumerate(MEASURES.items()):
            neural, default = (alike[data].values(fit, View(), measure) for fit in pairs[data])
            places, gain = decimals([float(default.mean())]), float(neural.mean() - default.mean())
            certain = p[place * len(MEASURES) + m] <= LEVEL
            if certain:
                (better if gain > 0 else worse).append(f"{data} ({name} {number(gain, f'+.{places}f')})")
            mark = ("▲" if gain > 0 else "▼") if certain else ""
            cells += [points(default, places), points(neural, places), number(gain, f"+.{places}f") + mark]
        cells += [f"{_seconds(alike[data], fit):.0f}" for fit in pairs[data][::-1]]
        lines.append(cells)
    head = ["data", "seeds"]
    for name in MEASURES.values():
        head += [f"{name}: default", "neural", "difference"]
    return "\n\n".join(
        [
            "## The neural process",
            "Preset `neural` is `default` with the Fisher vector and the pooled states of the neural point process "
            "beside the features that need no training. Points with the whole corpus ranked and the corpus unseen, "
            "mean ± standard deviation over the seeds that both have; ▲ and ▼ mark significant differences (paired "
            "randomisation test over queries on values averaged over seeds, p ≤ 0.05 after Holm's correction over the "
            "table). The last columns are CPU seconds of training.",
            table([*head, "default, s", "neural, s"], lines),
            _verdict(better, worse),
        ]
    )


def _verdict(better: Sequence[str], worse: Sequence[str]) -> str:
    """Return the table in words."""
    found = f"The neural process adds significantly on {listed(better)}" if better else "It adds nothing significant"
    return f"{found}; it takes away significantly on {listed(worse)}." if worse else f"{found}."


def _seconds(measured: Measured, fit: Fit) -> float:
    return float(np.mean([result["fit_cpu_seconds"] for result in measured.answered(fit, View())]))
