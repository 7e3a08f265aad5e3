"""`ablation`: the six scores of the paper's table, and the default model with one part changed at a time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments import cross_ablation
from experiments.lab import Lab
from experiments.markdown import Finding, decimals, deviation, measured_table, number, of
from experiments.measured import DIFFERENT, LEVEL, Measured
from experiments.plan import View
from experiments.variants import variant_fit
from neuroseqret.evaluation.significance import holm

#: The preset whose parts are left out in the paper's way, and the six scores.
BASE = "paper-literal"
PAPER = {
    BASE: "the whole model",
    f"{BASE}-similarity-only": "−Δx(q, c) − Δt(U(q), c)",
    f"{BASE}-kernel-only": "κ(q, c)",
    f"{BASE}-no-times": "κ(q, c) − γ Δx(q, c)",
    f"{BASE}-no-marks": "κ(q, c) − γ Δt(U(q), c)",
    f"{BASE}-no-unwarping": "without U",
}
DEFAULT = {
    "default": "the whole model",
    "whitened-only": "without a learned metric: the whitened tables",
    "no-bank": "without the bank of convolutions",
    "no-markov": "without the Markov-renewal tables",
    "no-groups": "without the probabilities of groups",
    "no-discriminant": "without the discriminant",
    "no-crops": "without training on crops",
    "one-member": "one member of the metric alone",
    "no-selection": "without choosing the weights of the members",
    "hinge-loss": "the paper's hinge loss instead of softmax",
    "pseudo-train": "no learning from groups without a train query",
    "similarity": "with the normalised similarity term",
    "neural": "with the neural process",
    "unwarping": "with the neural process and unwarping",
}


def measure(lab: Lab) -> None:
    """Measure every variant with one seed."""
    fits = [variant_fit(data, name) for name in (*PAPER, *DEFAULT) for data in lab.data]
    cross_ablation.measure(lab)
    lab.run([fit for fit in fits if lab.wanted(fit)])


def report(measured: Measured, figures: Path | None = None) -> str:
    """Return the MAP of the whole models and the differences of the variants, for the seed that all of them have."""
    parts = [
        "## Ablation",
        "MAP of test queries in points, with the whole corpus ranked, the corpus seen and seed 0 only. The first rows "
        "are the whole model and its standard deviation over all measured seeds; below is the difference that each "
        "variant makes. ▲ and ▼ mark significant differences (paired randomisation test over queries, p ≤ 0.05 after "
        "Holm's correction over the table). The test does not cover seeds: a difference within their deviation may be "
        "chance. The last column is the mean over the sets on which both were measured.",
        cross_ablation.report(measured),
        f"### The same six scores of SelfAttn (preset `{BASE}`)",
        _table(measured, PAPER),
        _similarity_term(measured),
        "### The default preset with one part changed at a time",
        _table(measured, DEFAULT),
    ]
    return "\n\n".join(filter(None, parts))


def _table(every_seed: Measured, variants: dict[str, str]) -> str:
    measured = every_seed.with_seeds({0})
    base, *others = variants
    sets = [d for d in measured.data if not all(np.isnan(gain(measured, d, name, base)) for name in others)]
    gains = {name: [gain(measured, data, name, base) for data in sets] for name in others}
    pairs = [(variant_fit(d, name), variant_fit(d, base)) for name in others for d in sets]
    p = holm(measured.p_values(pairs, View(), "AP")).reshape(len(others), -1)
    spread = [deviation(every_seed.values(variant_fit(d, base), View())) for d in sets]
    means = [measured.mean(variant_fit(d, base), View()) for d in sets]
    places = [decimals([mean]) for mean in means]
    lines = [
        [variants[base], *(number(mean, f".{n}f") for mean, n in zip(means, places, strict=True)), ""],
        [
            "standard deviation over seeds",
            *(number(value, f".{n}f") for value, n in zip(spread, places, strict=True)),
            number(_mean(spread)),
        ],
    ]
    for name, row in zip(others, p, strict=True):
        cells = [
            number(g, f"+.{n}f") + ("" if not q <= LEVEL else "▲" if g > 0 else "▼")
            for g, q, n in zip(gains[name], row, places, strict=True)
        ]
        lines.append([variants[name], *cells, number(_mean(gains[name]), "+.1f")])
    return measured_table(["variant", *sets, "mean"], lines)


def _similarity_term(measured: Measured) -> str:
    """Return the main result about the paper's score in words."""
    first = measured.with_seeds({0})
    alone = _known([gain(first, data, f"{BASE}-kernel-only", BASE) for data in measured.data])
    term = _known([gain(first, data, f"{BASE}-similarity-only", BASE) for data in measured.data])
    if not alone or not term:
        return ""
    better, mean = of(_higher(alone), len(alone)), _mean(alone)
    meaning = (
        "the similarity term dominates the score and costs more than it gives"
        if mean >= DIFFERENT and _higher(alone) > len(alone) / 2
        else "the similarity term is worth having"
    )
    return (
        f"In words: κ alone has a higher MAP than the whole score on {better} sets; the average difference is "
        f"{number(mean, '+.1f')} points. The similarity term alone differs from the whole score by "
        f"{number(_mean(term), '+.1f')} points. So in `{BASE}` {meaning}."
    )


def gain(measured: Measured, data: str, name: str, base: str) -> float:
    """Return the MAP of a variant less that of the whole model, in points."""
    return measured.mean(variant_fit(data, name), View()) - measured.mean(variant_fit(data, base), View())


def _known(values: list[float]) -> list[float]:
    return [value for value in values if not np.isnan(value)]


def _mean(values: list[float]) -> float:
    return float(np.mean(_known(values))) if _known(values) else float("nan")


def _higher(gains: list[float]) -> int:
    return sum(gain >= DIFFERENT for gain in gains)


def _lower(gains: list[float]) -> int:
    return sum(gain <= -DIFFERENT for gain in gains)


def findings(measured: Measured) -> list[Finding]:
    """Return the paper's claims about its ablation."""
    of_cross = cross_ablation.findings(measured)
    measured = measured.with_seeds({0})
    losses = {
        name: _known([gain(measured, data, name, BASE) for data in measured.data]) for name in PAPER if name != BASE
    }
    cells = [g for row in losses.values() for g in row]
    if not cells:
        return [*of_cross, Finding("The whole score is best on all sets; without κ it is far worse; U helps.", "")]
    added = _known([gain(measured, data, "unwarping", "neural") for data in measured.data])
    unmarked = _known([gain(measured, data, f"{BASE}-no-marks", f"{BASE}-no-times") for data in measured.data])
    no_unwarping = losses[f"{BASE}-no-unwarping"]
    return [
        *of_cross,
        Finding(
            "The whole score is best on all sets, and without κ it is far worse.",
            f"leaving a part out lowers MAP in {of(_lower(cells), len(cells))} cases and raises it in "
            f"{_higher(cells)}; average changes in points: "
            + "; ".join(f"{PAPER[name]}: {number(_mean(row), '+.1f')}" for name, row in losses.items()),
        ),
        Finding(
            "The score without the similarity of marks is better than the score without the similarity of times.",
            f"it has a higher MAP on {of(_higher(unmarked), len(unmarked))} sets, a lower one on {_lower(unmarked)}; "
            f"on average {number(_mean(unmarked), '+.1f')} points"
            if unmarked
            else "",
        ),
        Finding(
            "Without the unwarping U, MAP is lower on all sets.",
            f"leaving U out of `{BASE}` lowers MAP on {of(_lower(no_unwarping), len(no_unwarping))} sets and raises it "
            f"on {_higher(no_unwarping)}"
            + (
                f"; putting U into `neural` raises it on {of(_higher(added), len(added))} and lowers it on "
                f"{_lower(added)}"
                if added
                else ""
            ),
        ),
    ]
