"""`python -m experiments.summary`: write the results in short, into README.md and docs/results-summary.md.

Every figure is computed from the cells in `results/cells`; nothing is measured. The README gets one table and three
sentences, between two marker comments; the page gets the table and what it shows.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from experiments import ablation, second_stages, standing
from experiments.accuracy import NINE, above_all, marks
from experiments.markdown import bold_best, listed, number, table
from experiments.measured import DIFFERENT, LEVEL, Measured, row_fit
from experiments.plan import DETERMINISTIC, View
from experiments.result_cells import ResultCells
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.storage.files import new_file

SHOWN = ("self", "cross", "histogram-metric", "gru")
NINE_NAME = "best of the paper's nine"
BEGIN, END = "<!-- results: written by `python -m experiments.summary` -->", "<!-- end of results -->"
TITLES = {"unseen": "corpus not seen in training", "seen": "corpus seen in training"}
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")


def everywhere(measured: Measured, name: str) -> bool:
    """Return whether a method was measured on all sets, with the corpus seen and unseen."""
    return not any(np.isnan(mean(measured, data, name, corpus)) for data in measured.data for corpus in TITLES)


def whole(measured: Measured, name: str) -> bool:
    """Return whether a method was measured everywhere, and a second stage with all the seeds of its first stage.

    With fewer seeds it would differ from its first stage by the seeds alone.
    """
    if not everywhere(measured, name) or name not in second_stages.SECOND:
        return everywhere(measured, name)
    fits = [
        [row_fit(data, (n, "default"), corpus) for n in (name, "self")] for data in measured.data for corpus in TITLES
    ]
    return all(len(measured.answered(a, View())) >= len(measured.answered(b, View())) for a, b in fits)


def models(measured: Measured) -> list[str]:
    """Return those of `self` and `cross` that were measured on all sets, `cross` with all seeds of `self`."""
    return [name for name in ("self", "cross") if whole(measured, name)]


def readme_block(measured: Measured) -> str:
    """Return the README's table and the sentences below it."""
    roles = {"self": "`self` ranks", "cross": "`cross`, which reorders the best hundred of `self`,"}
    above = {
        name: above_all(measured, (name, "default"), list(BASELINES), View(), "unseen") for name in models(measured)
    }
    sentences = []
    if above:
        on = " and ".join(f"{roles[name]} above all {len(BASELINES)} baselines on {_of(*count)} sets"
                          for name, count in above.items())  # fmt: skip
        sentences.append(f"On sequences that training has not seen, {on}.")
    metric, sets = above_all(measured, ("histogram-metric", "default"), NINE, View(), "unseen")
    sentences.append(
        "What matters most is a metric trained on relevance: `histogram-metric`, which has one over plain histograms, "
        f"already beats all nine baselines of the paper on {_of(metric, sets)} sets."
    )
    if whole(measured, "self"):
        lost = {d: mean(measured, d, "self", "seen") - mean(measured, d, "self", "unseen") for d in measured.data}
        most = max(lost, key=lambda data: lost[data])
        sentences.append(
            f"New sequences are harder than those used in training (`self` loses up to {lost[most]:.0f} points, on "
            f"{most}), so judge a model by the upper half of the table, and train again when your data has changed."
        )
    return "\n\n".join([headline_table(measured), " ".join(sentences)])


def page(measured: Measured) -> str:
    """Return docs/results-summary.md."""
    parts = [
        "# Results in short",
        f"How well the methods rank on {_word(len(measured.data))} real data sets, in mean average precision (MAP, in "
        "percent). The whole corpus is ranked for every test query. *Not seen in training* means that a model is "
        "trained on one half of the corpus and ranks the other half; *seen* means that training uses the corpus that "
        "is ranked, as in the paper. The first is what to expect of sequences that you index after training. Figures "
        f"are means over {_seeds(measured)} seeds; bold is the best of a column.",
        headline_table(measured),
        "## What the figures show",
        "\n".join(f"- {statement}" for statement in statements(measured)),
        f"*Significantly* means p ≤ {LEVEL} in a paired randomisation test over queries, after Holm's correction over "
        "all methods and data sets.",
        "[Results](results.md) has every method, measure and figure, and how they were measured; "
        "[experiments](experiments.md) explains how to measure them again. This page and the table in the README are "
        "written by `python -m experiments.summary` from the saved measurements, and a test compares them.",
    ]
    return "\n\n".join(parts) + "\n"


def headline_table(measured: Measured) -> str:
    """Return a table with MAP of the main methods: one column per data set, first unseen, then seen."""
    lines, rows = [], [name for name in SHOWN if name not in MODELS or whole(measured, name)]
    for corpus, title in TITLES.items():
        columns = []
        for data in measured.data:
            means = [mean(measured, data, name, corpus) for name in rows]
            means.append(max(mean(measured, data, name, corpus) for name in NINE))
            columns.append(bold_best([number(value) for value in means], means))
        lines.append([f"*{title}*", *[""] * len(measured.data)])
        names = [*(f"`{name}`" for name in rows), NINE_NAME]
        lines += [[name, *cells] for name, *cells in zip(names, *columns, strict=True)]
    return table(["MAP", *measured.data], lines)


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
        f"small network on what is relevant to what. It is the best baseline on {_of(best['seen'], len(nine))} sets "
        f"with the corpus seen and on {_of(best['unseen'], len(nine))} with the corpus unseen. The best of the nine "
        f"baselines that the paper compares with reaches {nine[top]:.0f} on {top} and at most {others:.0f} elsewhere "
        "(corpus seen)."
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
        clearly = f", significantly on {_word(len(clear))} ({listed(clear)})" if clear else ""
        below = f"; it is below on {listed(down)}" if down else ""
        parts.append(
            f"With the corpus {corpus} it is above the best baseline on {_of(len(up), len(gains))} sets{by}{clearly}"
            f"{below}."
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
        f"significantly better than `self` on {_of(len(better), len(gains))} sets: {listed(better)}. On the others the "
        f"difference is at most {others:.1f} points."
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
        f"{_of(len(whole), len(measured.data))} sets: {listed(shown)}. On lists of all relevant and 1000 other "
        f"sequences, as in the paper, it is on {_word(len(lists))}."
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


_PARTS = {
    "whitened-only": "without a learned metric",
    "no-bank": "without the bank of convolutions",
    "no-markov": "without the histograms",
    "no-groups": "without the probabilities of groups",
    "no-selection": "without choosing weights",
    "neural": "with the neural process",
    "similarity": "with the similarity term",
}


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
    counts = listed([f"`{name}` on {_of(*count)} sets" for name, count in above.items() if count[1]])
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


def mean(measured: Measured, data: str, name: str, corpus: str) -> float:
    """Return the MAP of a method with its default preset, the whole corpus ranked."""
    return measured.mean(row_fit(data, (name, "default"), corpus), View())


def _seeds(measured: Measured) -> str:
    """Return the number of seeds of the trained methods in the table, as a word."""
    found = {
        len(measured.answered(row_fit(data, (name, "default"), corpus), View()))
        for data in measured.data
        for name in SHOWN
        for corpus in TITLES
        if name not in MODELS or whole(measured, name)
    }
    return " to ".join(_word(n) for n in sorted({min(found), max(found)}))


def _word(count: int) -> str:
    return WORDS[count] if count < len(WORDS) else str(count)


def _of(part: int, whole: int) -> str:
    return f"all {_word(whole)}" if part == whole else f"{_word(part)} of {_word(whole)}"


def with_block(readme: str, block: str) -> str:
    """Return the README with the part between the markers replaced."""
    return re.sub(
        f"{re.escape(BEGIN)}.*{re.escape(END)}", lambda _: f"{BEGIN}\n\n{block}\n\n{END}", readme, flags=re.DOTALL
    )


def write(measured: Measured, repository: Path) -> None:
    """Write both files."""
    readme = (repository / "README.md").read_text(encoding="utf-8")
    for file, text in (
        (repository / "README.md", with_block(readme, readme_block(measured))),
        (repository / "docs" / "results-summary.md", page(measured)),
    ):
        with new_file(file) as temporary:
            temporary.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Measured(ResultCells(Path("results/cells"))), Path())
