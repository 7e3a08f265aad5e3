"""The results in README.md and docs/results-summary.md: every figure comes from the committed cells."""

from __future__ import annotations

import re

import pytest

from conftest import REPOSITORY
from experiments import summary, summary_figures
from experiments.accuracy import NINE
from experiments.measured import Measured, row_fit
from experiments.plan import View
from experiments.result_cells import ResultCells

REMEDY = "run `python -m experiments.summary`"


@pytest.fixture(scope="module")
def committed():
    folder = REPOSITORY / "results" / "cells"
    if not folder.exists():
        pytest.skip("no committed results")
    return Measured(ResultCells(folder))


def read(path):
    return (REPOSITORY / path).read_text(encoding="utf-8")


def test_the_readme_has_the_results_of_the_cells(committed):
    readme = read("README.md")
    assert readme.count(summary.BEGIN) == readme.count(summary.END) == 1
    assert readme == summary.with_block(readme, summary.readme_block(committed)), REMEDY


def test_the_readme_has_no_other_figures_of_accuracy():
    outside = re.sub(f"{re.escape(summary.BEGIN)}.*{re.escape(summary.END)}", "", read("README.md"), flags=re.DOTALL)
    assert not re.findall(r"\b\d+\.\d\d? (?:points|%)|MAP \d|\d+ times", outside)


def test_the_page_has_the_results_of_the_cells(committed):
    assert read("docs/results-summary.md") == summary.page(committed), REMEDY


def test_the_table_has_every_set_and_both_conditions(committed):
    lines = [line.strip("| ").split(" | ") for line in summary.headline_table(committed).splitlines()]
    assert lines[0] == ["MAP", *committed.data]
    shown = [n for n in summary.SHOWN if n not in ("self", "cross") or n in summary_figures.models(committed)]
    names = [f"`{name}`" for name in shown] + [summary.NINE_NAME]
    assert [line[0] for line in lines[2:]] == [
        "*corpus not seen in training*",
        *names,
        "*corpus seen in training*",
        *names,
    ]
    for corpus, row in (("unseen", lines[2 + len(names)]), ("seen", lines[3 + 2 * len(names)])):
        for data, cell in zip(committed.data, row[1:], strict=True):
            best = max(summary_figures.mean(committed, data, name, corpus) for name in NINE)
            assert cell.strip("*") == f"{best:.1f}"


def test_other_cells_give_a_page_of_their_own(measured):
    made = summary.page(measured)
    assert "# Results in short" in made
    assert "nan" not in made
    assert made != read("docs/results-summary.md")


def test_a_second_stage_of_fewer_seeds_than_its_first_stage_is_not_in_the_table(committed):
    if not summary_figures.everywhere(committed, "cross"):
        pytest.skip("cross is not measured on all sets")
    alike = committed.with_seeds({0})
    assert summary_figures.models(alike) == ["self", "cross"]
    assert "| `cross` |" in summary.headline_table(alike)
    fits = [row_fit(data, ("cross", "default"), corpus) for data in committed.data for corpus in summary_figures.TITLES]
    least = min(len(committed.answered(fit, View())) for fit in fits)
    assert ("cross" in summary_figures.models(committed)) == (least == committed.seeds)
