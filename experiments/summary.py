"""`python -m experiments.summary`: write the results in short, into README.md and docs/results-summary.md.

Every figure is computed from the cells in `results/cells`; nothing is measured. The README gets one table and three
sentences, between two marker comments; the page gets the table and what it shows.
"""

from __future__ import annotations

import re
from pathlib import Path

from experiments.accuracy import NINE, above_all
from experiments.markdown import bold_best, number, of_in_words, table, word
from experiments.measured import LEVEL, Measured, row_fit
from experiments.plan import View
from experiments.result_cells import ResultCells
from experiments.summary_figures import TITLES, complete, mean, models
from experiments.summary_statements import statements
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.storage.files import new_file

SHOWN = ("self", "cross", "histogram-metric", "gru")
NINE_NAME = "best of the paper's nine"
BEGIN, END = "<!-- results: written by `python -m experiments.summary` -->", "<!-- end of results -->"


def readme_block(measured: Measured) -> str:
    """Return the README's table and the sentences below it."""
    roles = {"self": "`self` ranks", "cross": "`cross`, which reorders the best hundred of `self`,"}
    above = {
        name: above_all(measured, (name, "default"), list(BASELINES), View(), "unseen") for name in models(measured)
    }
    sentences = []
    if above:
        on = " and ".join(f"{roles[name]} above all {len(BASELINES)} baselines on {of_in_words(*count)} sets"
                          for name, count in above.items())  # fmt: skip
        sentences.append(f"On sequences that training has not seen, {on}.")
    metric, sets = above_all(measured, ("histogram-metric", "default"), NINE, View(), "unseen")
    sentences.append(
        "What matters most is a metric trained on relevance: `histogram-metric`, which has one over plain histograms, "
        f"already beats all nine baselines of the paper on {of_in_words(metric, sets)} sets."
    )
    if complete(measured, "self"):
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
        f"How well the methods rank on {word(len(measured.data))} real data sets, in mean average precision (MAP, in "
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
    lines, rows = [], [name for name in SHOWN if name not in MODELS or complete(measured, name)]
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


def _seeds(measured: Measured) -> str:
    """Return the number of seeds of the trained methods in the table, as a word."""
    found = {
        len(measured.answered(row_fit(data, (name, "default"), corpus), View()))
        for data in measured.data
        for name in SHOWN
        for corpus in TITLES
        if name not in MODELS or complete(measured, name)
    }
    return " to ".join(word(n) for n in sorted({min(found), max(found)}))


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
