"""`python -m experiments`, called as a user would."""

from __future__ import annotations

import pytest

from cli.calling import call
from experiments.__main__ import EXPERIMENTS, run
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from fake_cells import put, ranking
from neuroseqret.cli import console
from neuroseqret.methods import BASELINES, MODELS


def experiment(*arguments):
    return call(*arguments, entry=run)


QUICK = ("--method", "random", "--method", "histogram", "--seeds", "2", "--max-seconds", "1", "--max-queries", "6")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEUROSEQRET_DATA", raising=False)


def test_all_measures_writes_the_document_and_does_nothing_twice(data, tmp_path):
    done = experiment("all", "--data", str(data), *QUICK)
    assert done.returncode == 0, done.stderr
    assert "docs/results.md: made from 30 cells" in done.stdout.replace("\n", " ")
    text = (tmp_path / "docs" / "results.md").read_text()
    assert "| histogram |" in text
    files = {file: file.read_bytes() for file in (tmp_path / "results" / "cells").rglob("*.json")}
    # Sets x (random: seeds, corpora, views; histogram: and cuts; the table of the data).
    assert len(files) == 2 * (2 * 2 * 2 + 2 * 2 + 2 + 1)
    again = experiment("all", "--data", str(data), *QUICK)
    assert again.stderr == ""  # nothing was measured
    assert {file: file.read_bytes() for file in files} == files
    assert (tmp_path / "docs" / "results.md").read_text() == text


def test_one_experiment_prints_its_part_and_data_may_come_from_the_environment(data, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_DATA", str(data / "first"))
    done = experiment("lengths", *QUICK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("## Query lengths")
    assert "second" not in done.stdout


def test_without_measuring_no_data_is_needed(tmp_path):
    put(ResultCells(tmp_path / "results" / "cells"), Fit(data="toy", method="random"), View(), ranking([0.5] * 5))
    done = experiment("accuracy", "--no-measure")
    assert done.returncode == 0, done.stderr
    assert "| random | **50.0** |" in done.stdout


def test_tables_are_not_wrapped_on_a_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr(console.out, "soft_wrap", False)  # as it is there
    name = 130 * "x"
    put(ResultCells(tmp_path / "results" / "cells"), Fit(data=name, method="random"), View(), ranking([0.5] * 5))
    done = experiment("accuracy", "--no-measure")
    assert f"| method | {name} |" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("nonsense",), "no experiment is called 'nonsense'; there are accuracy, learning-curves"),
        (("all",), "there is no data; name data folders by --data or by NEUROSEQRET_DATA"),
        (("all", "--data", "."), "is not a data folder and holds none"),
        (("all", "--data", ".", "--method", "nonsense"), "no method is called 'nonsense'"),
        (("all", "--no-measure"), "results/cells: holds no cells"),
    ],
)
def test_a_mistake_is_one_line(arguments, line):
    done = experiment(*arguments)
    assert done.returncode == 2
    assert line in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_help_lists_experiments_and_methods():
    done = experiment("--help")
    said = "".join(done.stdout.split())
    assert done.returncode == 0
    assert ",".join(EXPERIMENTS) in said
    assert ",".join([*MODELS, *BASELINES]) in said


def test_a_budget_must_be_a_number():
    done = experiment("all", "--max-seconds", "nan")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "Invalid value for '--max-seconds'" in done.stderr


def test_damaged_cells_and_unwritable_places_are_one_line(data, tmp_path):
    (tmp_path / "results" / "cells").mkdir(parents=True)
    (tmp_path / "results" / "cells" / "bad.json").write_text("{")
    done = experiment("accuracy", "--no-measure")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "bad.json: is not a cell" in done.stderr
    (tmp_path / "file").write_text("")
    done = experiment("accuracy", "--data", str(data), "--out", "file", *QUICK)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "file/cells" in done.stderr
