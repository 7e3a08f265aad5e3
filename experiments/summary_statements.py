"""What the figures show, in words: the statements of docs/results-summary.md, each made from the cells."""

from __future__ import annotations

import numpy as np

from experiments import ablation, second_stages, standing
from experiments.accuracy import NINE, above_all, marks
from experiments.markdown import listed, number, of_in_words, word
from experiments.measured import DIFFERENT, LEVEL, Measured
from experiments.plan import DETERMINISTIC, View
from experiments.summary_figures import TITLES, everywhere, mean, models
from neuroseqret.methods.registry import BASELINES, MODELS

#: What each variant of the ablation is, in words.
_PARTS = {
    "whitened-only": "without a learned metric",
    "no-bank": "without the bank of convolutions",
    "no-markov": "without the histograms",
    "no-groups": "without the probabilities of groups",
    "no-selection": "without choosing weights",
    "neural": "with the neural process",
    "similarity": "with the similarity term",
}


def statements(measured: Measured) -> list[str]:
    """Return what the figures show, one statement each; what was not measured is left out."""
    found = [
        _relevance_matters(measured),
        *(_against_best(measured, name) for name in models(measured)),
        _second_stage(measured) if everywhere(measured, "cross") else "",
        _first_hit(measured),
        _new_sequences(measured) if models(measured) else "",
        _ablation(measured),
        _paper(measured),
        _hardest(measured),
    ]
    return [statement for statement in found if statement]


def _relevance_matters(measured: Measured) -> str:
    best = {
        corpus: sum(measured.baselines(data, View(), corpus)[0] == "histogram-metric" for data in measured.data)
        for corpus in TITLES
    }
    nine = {data: max(mean(measured, data, name, "seen") for name in NINE) for data in measured.data}
    top = max(nine, key=lambda data: nine[data])
    others = max(value for data, value in nine.items() if data != top)
    return (
        "**Training on relevance matters most.** `histogram-metric` takes histograms of marks and gaps and trains a "
        "small network on what is relevant to what. It is the best baseline on "
        f"{of_in_words(best['seen'], len(nine))} sets with the corpus seen and on "
        f"{of_in_words(best['unseen'], len(nine))} with the corpus unseen. The best of the nine baselines that the "
        f"paper compares with reaches {nine[top]:.0f} on {top} and at most {others:.0f} elsewhere (corpus seen)."
    )


def _against_best(measured: Measured, name: str) -> str:
    """Compare a model with the best baseline of each set."""
    parts = []
    for corpus in TITLES:
        gains = {
            data: mean(measured, data, name, corpus)
            - mean(measured, data, measured.baselines(data, View(), corpus)[0], corpus)
            for data in measured.data
        }
        up = [data for data in gains if gains[data] >= DIFFERENT]
        down = [f"{data} ({number(gains[data], '+.1f')})" for data in gains if gains[data] <= -DIFFERENT]
        signs = marks(measured, "AP", corpus, View())
        clear = [data for data in measured.data if signs.get((data, (name, "default"))) == "▲"]
        by = f", by {min(gains[d] for d in up):.1f} to {max(gains.values()):.1f} points" if up else ""
        clearly = f", significantly on {word(len(clear))} ({listed(clear)})" if clear else ""
        below = f"; it is below on {listed(down)}" if down else ""
        parts.append(
            f"With the corpus {corpus} it is above the best baseline on {of_in_words(len(up), len(gains))} sets"
            f"{by}{clearly}{below}."
        )
    return f"**`{name}` against the best baseline of each set.** {' '.join(parts)}"


def _second_stage(measured: Measured) -> str:
    gains, p = (x[:, second_stages.SECOND.index("cross"), 0] for x in second_stages.compare(measured, "default"))
    order = [k for k in np.argsort(-gains) if gains[k] > 0 and p[k] <= LEVEL]
    better = [
        f"{measured.data[k]} ({number(float(gains[k]), '+.1f')} points{f', p = {p[k]:.3f}' if p[k] > 0.01 else ''})"
        for k in order
    ]
    others = max((abs(gains[k]) for k in range(len(gains)) if k not in order), default=0.0)
    return (
        "**The second stage.** `cross` puts the best hundred of `self` into a new order. With the corpus seen it is "
        f"significantly better than `self` on {of_in_words(len(better), len(gains))} sets: {listed(better)}. On the "
        f"others the difference is at most {others:.1f} points."
    )


def _first_hit(measured: Measured) -> str:
    def ahead(view: View) -> dict[str, tuple[str, float]]:
        leads = {data: standing.lead(measured, data, "seen", view, "RR") for data in measured.data}
        return {data: found for data, found in leads.items() if found is not None and found[1] >= DIFFERENT}

    whole, lists = ahead(View()), ahead(View(protocol="sampled"))
    shown = [f"{data} (`{who}`, {number(by, '+.1f')} points)" for data, (who, by) in whole.items()]
    return (
        "**If one relevant hit is enough,** a simple baseline may do. MAP and nDCG ask for all relevant sequences; by "
        "reciprocal rank, which asks for the first, a baseline is better than all models on "
        f"{of_in_words(len(whole), len(measured.data))} sets: {listed(shown)}. On lists of all relevant and 1000 other "
        f"sequences, as in the paper, it is on {word(len(lists))}."
    )


def _new_sequences(measured: Measured) -> str:
    def change(name: str) -> dict[str, float]:
        return {d: mean(measured, d, name, "unseen") - mean(measured, d, name, "seen") for d in measured.data}

    best = models(measured)[-1]
    shown = [
        " instead of ".join(f"{mean(measured, data, best, corpus):.0f}" for corpus in TITLES) + f" on {data}"
        for data in ("health", "sports", "twitter")
        if data in measured.data
    ]
    metric, untrained = change("histogram-metric"), change("histogram")
    gains = {(name, data): by for name in BASELINES if name not in DETERMINISTIC for data, by in change(name).items()}
    name, data = max(gains, key=lambda key: gains[key])
    return (
        f"**New sequences are harder.** `{best}` reaches {listed(shown)} if training has not seen the corpus. "
        f"`histogram-metric` loses up to {-min(metric.values()):.1f} points. Weaker methods may gain, at most "
        f"{gains[name, data]:.1f} points (`{name}` on {data}). The two conditions are not strictly comparable, because "
        "half of the corpus is ranked when it is unseen: `histogram`, which is not trained on relevance, changes by "
        f"{number(min(untrained.values()), '+.1f')} to {number(max(untrained.values()), '+.1f')} points. Train again "
        "when the corpus has changed a lot."
    )


def _ablation(measured: Measured) -> str:
    first = measured.with_seeds({0})
    changes = {name: [ablation.gain(first, data, name, "default") for data in first.data] for name in _PARTS}
    known = {name: gains for name, gains in changes.items() if not np.isnan(gains).all()}
    if not known:
        return ""
    shown = [f"{_PARTS[name]} {number(float(np.nanmean(gains)), '+.1f')}" for name, gains in known.items()]
    return (
        "**What the score owes to each part** (mean change of MAP in points, corpus seen, one seed): "
        f"{', '.join(shown)}."
    )


def _paper(measured: Measured) -> str:
    above = {name: above_all(measured, (name, "paper"), NINE, View()) for name in MODELS}
    counts = listed([f"`{name}` on {of_in_words(*count)} sets" for name, count in above.items() if count[1]])
    if not counts:
        return "**Preset `paper` is for comparison.** It follows the paper's equations. Use `default`."
    return (
        "**Preset `paper` is for comparison.** It follows the paper's equations. With the corpus seen, its models are "
        f"above the best of the nine baselines as follows: {counts}. Use `default`."
    )


def _hardest(measured: Measured) -> str:
    every = (*BASELINES, *MODELS)
    best = {
        data: float(np.nanmax([mean(measured, data, name, corpus) for corpus in TITLES for name in every]))
        for data in measured.data
    }
    data = min(best, key=lambda one: best[one])
    why = " The task is to find other matches of the same player. Team and role can be recognised, the player hardly."
    return f"**The hardest set is {data}:** no method gets beyond {best[data]:.1f}.{why if data == 'soccer' else ''}"
