"""The report: order, marks of significance, JSON and files."""

from __future__ import annotations

import json

import ir_measures
import numpy as np
import pyarrow.parquet as pq
import pytest

from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.report import Report, compare
from neuroseqret.evaluation.runner import Result
from neuroseqret.evaluation.scoring import answer
from neuroseqret.evaluation.significance import holm, randomisation_test
from neuroseqret.measures.table import MEASURES


class Noisy(Unlearned):
    """Knows the groups, under noise: the less noise, the better."""

    def __init__(self, name: str, noise: float) -> None:
        super().__init__(NoSettings())
        self.name, self.noise = name, noise

    def compute_scores(self, queries, candidates):
        generator = np.random.default_rng([len(candidates), len(self.name)])
        truth = np.array(queries.groups.to_pylist())[:, None] == np.array(candidates.groups.to_pylist())
        return (truth + self.noise * generator.normal(size=truth.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def report(sets):
    task = make_task(*sets(groups=5, per_group=30, queries_per_group=40))
    methods = [Noisy("random", 50), Noisy("histogram", 2.0), Noisy("folder/good", 1.0), Noisy("folder2/good", 0.99)]
    results = [Result(m.name, answer(m, task), 1.0) for m in methods]
    return Report("toy", task, [*results, Result("mass", None, 0.1, error="series too short")])


def test_order_and_marks(report):
    assert report.order("AP")[-2:] == ["histogram", "random"]
    best, second = report.order("AP")[:2]
    assert {best, second} == {"folder/good", "folder2/good"}
    assert report.marks("random", "AP") == "▼"
    assert report.marks("histogram", "AP") == ""
    assert report.marks("folder/good", "AP") == report.marks("folder2/good", "AP") == "▲"  # alike: no dagger


def test_in_a_notebook_it_is_the_table(report):
    lines = repr(report).splitlines()
    assert lines[0] == "toy, test: 80 queries, full ranking, corpus seen"
    assert lines[1].split() == list(MEASURES)
    rows, legend = lines[2 : 2 + len(report.results)], lines[2 + len(report.results) :]
    assert [line.split()[0] for line in rows] == [result.name for result in report.results]
    assert rows[0].split()[1] == f"{100 * report.results[0].mean('AP'):.1f}▼"
    assert rows[-1].endswith("failed: series too short")
    assert len({len(line) for line in rows[:-1]}) == 1
    assert max(map(len, legend)) <= 80
    said = " ".join(legend)
    assert said == (
        "Means in percent. Significant at 5% (paired randomisation test, Holm's correction): † better than the second "
        "best, ▲ better and ▼ worse than histogram."
    )
    assert said in " ".join(report._repr_html_().replace("&#x27;", "'").split())


def test_a_clear_winner_gets_the_dagger(report):
    few = Report("toy", report.task, [r for r in report.results if r.name != "folder2/good"])
    assert few.marks("folder/good", "AP") == "†▲"
    alone = Report("toy", report.task, report.results[:1])
    assert alone.marks("random", "AP") == ""


def test_correction_is_over_the_whole_table(report):
    """Three methods against the bar and one winner, five measures each: one family of twenty."""
    corrected = np.stack([report.corrected["bar"], report.corrected["best"]])
    assert np.isfinite(corrected).sum() == 3 * 5 + 5
    histogram = report.results[1].answers.measures
    raw = [
        randomisation_test(report.results[row].answers.measures[m], histogram[m], seed=0)[0]
        for row in (0, 2, 3)
        for m in MEASURES
    ]
    for column, measure in enumerate(MEASURES):
        first, second = (
            next(r for r in report.results if r.name == name).answers.measures[measure]
            for name in report.order(measure)[:2]
        )
        raw.append(randomisation_test(first, second, seed=0)[0])
        assert np.isfinite(report.corrected["best"][:, column]).sum() == 1
    expected = np.sort(holm(raw))
    assert np.sort(corrected[np.isfinite(corrected)]) == pytest.approx(expected)


def test_fisher_as_an_option(report):
    exact = Report("toy", report.task, report.results, "fisher-exact")
    assert exact.marks("folder/good", "AP") == "▲"
    assert compare(report.results[2:3], report.results[1], "fisher-exact").shape == (1, 5)
    with pytest.raises(UserError, match="'t-test'"):
        Report("toy", report.task, report.results, "t-test")
    with pytest.raises(UserError, match="mass failed"):
        compare(report.results[4:], report.results[1])


def test_json_is_what_other_tools_rely_on(report):
    written = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert written["data"] == "toy"
    assert written["protocol"] == "full"
    assert written["corpus"] == "seen"
    assert written["split"] == "test"
    assert written["queries"] == len(report.task.queries) == 80
    assert list(written["methods"]) == ["random", "histogram", "folder/good", "folder2/good", "mass"]
    good = written["methods"]["folder/good"]
    assert list(good) == ["AP", "nDCG@10", "nDCG@20", "RR", "AP@10/hits", "seconds"]
    assert all(0 <= good[m] <= 1 for m in MEASURES)
    assert good["AP"] == pytest.approx(report.results[2].answers.measures["AP"].mean())
    assert written["methods"]["mass"] == {"error": "series too short", "seconds": 0.1}
    assert written["significance"]["against histogram"]["random"]["AP"] < 0.05
    assert "histogram" not in written["significance"]["against histogram"]


def test_saved_runs_give_the_same_measures(report, tmp_path):
    """The corpus is short enough for the runs to be whole rankings, so ir-measures must find what we found."""
    folder = report.save(tmp_path / "runs")
    assert sorted(p.name for p in folder.iterdir()) == [
        "good-2.run", "good.run", "histogram.run", "per_query.parquet", "random.run"
    ]  # fmt: skip
    table = pq.read_table(folder / "per_query.parquet").to_pylist()
    assert len(table) == 4 * 80
    kept = {(row["method"], row["query"]): row for row in table}
    task = report.task
    corpus_ids = task.corpus.ids.to_pylist()
    qrels = {
        query: {corpus_ids[row]: 1 for row in task.relevance.of(q)}
        for q, query in enumerate(task.queries.ids.to_pylist())
    }
    run = ir_measures.read_trec_run(str(folder / "good.run"))
    number = 0
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(m) for m in MEASURES[:4]], qrels, run):
        row = kept["folder/good", metric.query_id]
        assert row["relevant"] == 30
        assert row["candidates"] == 150
        assert row[str(metric.measure)] == pytest.approx(metric.value, abs=1e-9)
        number += 1
    assert number == 4 * 80


def test_saving_replaces_an_older_report_and_nothing_else(report, tmp_path):
    report.save(tmp_path / "runs")
    report.save(tmp_path / "runs")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(UserError, match="choose another name"):
        report.save(tmp_path / "mine")
