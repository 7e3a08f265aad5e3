"""`neuroseqret evaluate`, called as a user would."""

from __future__ import annotations

import json
from io import StringIO
from unittest.mock import patch

import numpy as np
import pytest
from rich.console import Console

from cli.calling import call
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.baselines.histogram_metric import HistogramMetric
from neuroseqret.cli.evaluate import table
from neuroseqret.evaluation import evaluate as evaluating
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.report import Report
from neuroseqret.evaluation.runner import Result
from neuroseqret.evaluation.scoring import answer_from
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.readers.data_folder import write_folder
from simulated import simulate


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    queries, corpus = simulate(queries_per_group=10)
    write_folder(tmp_path / "toy", corpus, queries)
    return tmp_path / "toy"


def test_table_json_and_runs(data, tmp_path):
    done = call(
        "evaluate", str(data), "--protocol", "sampled", "--corpus", "unseen", "--max-queries", "9", "--seed", "2",
        "--json", str(tmp_path / "out.json"), "--run", str(tmp_path / "runs"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "toy: 9 test queries, sampled lists, corpus unseen, seed 2" in done.stdout
    assert "15 more test queries were not drawn" in done.stdout
    written = json.loads((tmp_path / "out.json").read_text())
    assert (written["data"], written["protocol"], written["corpus"]) == ("toy", "sampled", "unseen")
    assert (written["split"], written["queries"], written["seed"]) == ("test", 9, 2)
    assert list(written["methods"]) == ["random", "histogram"]
    for name, figures in written["methods"].items():
        row = next(line for line in done.stdout.splitlines() if line.split()[:1] == [name])
        assert f"{100 * figures['AP']:.1f}" in row
    assert {p.name for p in (tmp_path / "runs").iterdir()} == {"random.run", "histogram.run", "per_query.parquet"}
    assert not list(tmp_path.glob(".*"))  # nothing half-written stays


def test_folder_and_name_give_the_same_figures_and_the_second_call_is_kept(data, tmp_path):
    queries, corpus = simulate(queries_per_group=10)
    folder = str(Histogram().fit(queries, corpus).save(tmp_path / "model"))
    arguments = ("evaluate", str(data), "--method", folder, "--method", "histogram", "--json", str(tmp_path / "j"))
    first = call(*arguments)
    figures = json.loads((tmp_path / "j").read_text())["methods"]
    assert list(figures) == ["random", folder, "histogram"]
    assert {k: v for k, v in figures[folder].items() if k != "seconds"} == {
        k: v for k, v in figures["histogram"].items() if k != "seconds"
    }
    assert "computed before" not in first.stdout
    second = call(*arguments)
    assert "computed before" in second.stdout
    assert json.loads((tmp_path / "j").read_text())["methods"] == figures
    assert "computed before" not in call(*arguments, "--no-cache").stdout


def test_a_failing_method_is_shown_with_its_reason(data, tmp_path):
    """A model trained with the whole corpus cannot answer in `unseen`."""
    queries, corpus = simulate(queries_per_group=10)
    model = HistogramMetric(loop={"steps": 3, "evaluations": 1}).fit(queries, corpus)
    folder = str(model.save(tmp_path / "model"))
    done = call(
        "evaluate", str(data), "--method", folder, "--corpus", "unseen", "--json", str(tmp_path / "j")
    )  # fmt: skip
    assert done.returncode == 1
    assert "failed" in done.stdout
    assert "was trained with this whole corpus" in " ".join(done.stdout.split())
    methods = json.loads((tmp_path / "j").read_text())["methods"]
    assert "whole corpus" in methods[folder]["error"]
    assert methods["histogram"]["AP"] > 0
    half = HistogramMetric(loop={"steps": 3, "evaluations": 1}).fit(queries, corpus[::2])
    done = call("evaluate", str(data), "--method", str(half.save(tmp_path / "h")), "--corpus", "unseen")
    assert done.returncode == 0
    assert "was trained with another corpus" in " ".join(done.stderr.split())  # whether they overlap cannot be told


def test_a_model_of_another_seed_has_seen_queries_that_the_seed_splits_off(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    queries, corpus = simulate(queries_per_group=10)
    unsplit = queries.without_columns("split")
    write_folder(tmp_path / "toy", corpus, unsplit)
    model = HistogramMetric(loop={"steps": 3, "evaluations": 1}).fit(unsplit, corpus, seed=1)
    arguments = ("evaluate", str(tmp_path / "toy"), "--method", str(model.save(tmp_path / "model")))
    done = call(*arguments)
    assert done.returncode == 2
    assert "evaluate with --seed 1" in done.stderr
    assert call(*arguments, "--seed", "1").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--method", "nothing"], "no method is called 'nothing'"),
        (["--method", "./nothing"], "nothing: not a model folder (there is no such folder); make one"),
        (["--protocol", "half"], "no protocol is called 'half'"),
        (["--corpus", "old"], "the corpus is seen or unseen, not 'old'"),
        (["--split", "dev"], "no query has split 'dev'"),
        (["--test", "t"], "no test is called 't'"),
        (["--max-queries", "0"], "Invalid value for '--max-queries'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(data, arguments, said):
    done = call("evaluate", str(data), *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_folder_without_queries_or_labels(tmp_path):
    queries, corpus = simulate()
    write_folder(tmp_path / "alone", corpus)
    write_folder(tmp_path / "bare", corpus.without_columns("group"), queries.without_columns("group"))
    for name, missing in (("alone", "queries"), ("bare", "groups or qrels")):
        done = call("evaluate", str(tmp_path / name))
        assert done.returncode == 2
        assert f"{tmp_path / name}: has no {missing} to evaluate with" in done.stderr
    assert call("evaluate", str(tmp_path / "none")).returncode == 2


def test_qrels_decide_what_is_relevant(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    queries, corpus = simulate()
    queries, corpus = queries.without_columns("group"), corpus.without_columns("group")
    tested = [i for i, split in enumerate(queries.column("split").to_pylist()) if split == "test"]
    qrels = {queries.ids[row].as_py(): {corpus.ids[0].as_py(): 1} for row in tested[:5]}
    write_folder(tmp_path / "toy", corpus, queries, qrels)
    done = call("evaluate", str(tmp_path / "toy"), "--json", str(tmp_path / "j"))
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "j").read_text())
    assert (written["queries"], written["queries_left_out"]) == (5, len(tested) - 5)
    assert f"{len(tested) - 5} test queries have nothing relevant" in done.stdout


def test_places_that_cannot_be_written_are_refused_before_the_work(data, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluating, "evaluate", lambda *arguments, **options: pytest.fail("it began"))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("")
    for option, line in (("--run", "notes: exists and holds no per_query.parquet"), ("--json", "notes: is a folder")):
        done = call("evaluate", str(data), option, str(tmp_path / "notes"))
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert line in done.stderr


def test_names_of_methods_stay_whole_in_80_columns(sets):
    """Also where every figure is 100.0 with two signs, and the times are long."""
    task = make_task(*sets(groups=3, per_group=10, queries_per_group=8))
    perfect = (np.array(task.queries.groups)[:, None] == np.array(task.corpus.groups)).astype(np.float32)
    results = [Result(name, answer_from(perfect, task), 12345.6, cached=True) for name in (*BASELINES, *MODELS)]
    report = Report("toy", task, results)
    console = Console(width=80, file=StringIO())
    with patch.object(Report, "marks", lambda *_: "†▲"):
        console.print(table(report))
    lines = console.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if "100.0†▲" in line} == {result.name for result in results}
