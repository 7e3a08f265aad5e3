"""`ablation`: the six scores of the paper's table, and the default model with one part changed at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neuroseqret.evaluation.significance import holm
from neuroseqret.experiments.lab import Lab, variant_fit
from neuroseqret.experiments.markdown import Finding, deviation, measured_table, number, of
from neuroseqret.experiments.measured import LEVEL, Measured
from neuroseqret.experiments.plan import View

PAPER = {
    "paper": "the whole model",
    "paper-similarity-only": "−Δx(q, c) − Δt(U(q), c)",
    "paper-kernel-only": "κ(q, c)",
    "paper-no-times": "κ(q, c) − γ Δx(q, c)",
    "paper-no-marks": "κ(q, c) − γ Δt(U(q), c)",
    "paper-no-unwarping": "without U",
}
DEFAULT = {
    "default": "the whole model",
    "no-projection": "without the learned projection",
    "linear-projection": "a linear projection for the network",
    "no-head-phase": "without the second phase of training",
    "no-markov": "without the Markov-renewal process",
    "no-fisher": "without Fisher vectors",
    "no-whitening": "Fisher vectors without whitening",
    "no-pooled": "without pooled states",
    "one-member": "one projection for two side by side",
    "hinge-loss": "the paper's hinge loss for softmax",
    "pseudo-train": "no learning from groups without a train query",
    "similarity": "with the normalised similarity term",
    "similarity-literal": "with the paper's similarity term",
    "unwarping": "with unwarping",
}


def measure(lab: Lab) -> None:
    """One seed: what a part is worth on a set, not how it varies."""
    fits = [variant_fit(data, name) for name in (*PAPER, *DEFAULT) for data in lab.data]
    lab.run([fit for fit in fits if lab.wanted(fit)])


def report(measured: Measured, figures: Path | None = None) -> str:
    """MAP of the whole models, differences of the variants, both of the seed that all of them have."""
    return "\n\n".join(
        [
            "## Ablation",
            "MAP of test queries in points, the whole corpus ranked, corpus seen, seed 0 alone: the whole model, its "
            "deviation over the seeds that were measured, and below the difference that a variant makes. ▲ and ▼: "
            "significant (paired randomisation test over queries, p ≤ 0.05 after Holm's correction over the table; "
            "that does not know of seeds: a difference within their deviation may be chance). The last column is the "
            "mean over the sets on which both were measured. The paper's ablation is of CrossAttn, this one of "
            "SelfAttn, whose score has the same terms.",
            "### The paper's six scores (preset `paper`)",
            _table(measured, PAPER),
            "### What the default preset adds, one at a time",
            _table(measured, DEFAULT),
        ]
    )


def _table(every_seed: Measured, variants: dict[str, str]) -> str:
    measured = every_seed.with_seeds({0})
    base, *others = variants
    sets = [d for d in measured.data if not all(np.isnan(gain(measured, d, name, base)) for name in others)]
    gains = {name: [gain(measured, data, name, base) for data in sets] for name in others}
    pairs = [(variant_fit(d, name), variant_fit(d, base)) for name in others for d in sets]
    p = holm(measured.p_values(pairs, View(), "AP")).reshape(len(others), -1)
    spread = [deviation(every_seed.values(variant_fit(d, base), View())) for d in sets]
    lines = [
        [variants[base], *(number(measured.mean(variant_fit(d, base), View())) for d in sets), ""],
        ["standard deviation over seeds", *(number(value) for value in spread), number(_mean(spread))],
    ]
    for name, row in zip(others, p, strict=True):
        cells = [
            number(g, "+.1f") + ("" if not q <= LEVEL else "▲" if g > 0 else "▼")
            for g, q in zip(gains[name], row, strict=True)
        ]
        lines.append([variants[name], *cells, number(_mean(gains[name]), "+.1f")])
    return measured_table(["variant", *sets, "mean"], lines)


def gain(measured: Measured, data: str, name: str, base: str) -> float:
    """What a variant adds to the whole model's MAP, in points."""
    return measured.mean(variant_fit(data, name), View()) - measured.mean(variant_fit(data, base), View())


def _mean(values: list[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")


def findings(measured: Measured) -> list[Finding]:
    """The paper's statements on its ablation."""
    measured = measured.with_seeds({0})
    losses = {name: [gain(measured, d, name, "paper") for d in measured.data] for name in PAPER if name != "paper"}
    known = [[g for g in row if not np.isnan(g)] for row in losses.values()]
    cells = [g for row in known for g in row]
    if not cells:
        return [Finding("The whole score is best on all sets; without κ it is far worse; U helps.", "")]
    means = {name: _mean(row) for name, row in losses.items()}
    unwarping = [g for g in losses["paper-no-unwarping"] if not np.isnan(g)]
    added = [g for d in measured.data if not np.isnan(g := gain(measured, d, "unwarping", "default"))]
    return [
        Finding(
            "The whole score is best on all sets, and without κ it is far worse.",
            f"leaving a part out lowers MAP in {of(sum(g < 0 for g in cells), len(cells))} cases; on average "
            + ", ".join(f"{PAPER[name]}: {number(mean, '+.1f')}" for name, mean in means.items())
            + " points",
        ),
        Finding(
            "Without the unwarping U all sets lose.",
            f"leaving U out of `paper` loses on {of(sum(g < 0 for g in unwarping), len(unwarping))} sets; putting it "
            f"into `default` gains on {of(sum(g > 0 for g in added), len(added))}",
        ),
    ]
