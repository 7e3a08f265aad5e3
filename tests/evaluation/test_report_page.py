"""The report as a page: complete, static, and safe to open."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from neuroseqret.errors import UserError
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.report import Report
from neuroseqret.evaluation.report_page import page, write_page
from neuroseqret.evaluation.runner import Result
from neuroseqret.evaluation.scoring import answer_from
from neuroseqret.measures.table import MEASURES

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def report(sets) -> Report:
    task = make_task(*sets(groups=4, per_group=10, queries_per_group=10))
    random = np.random.default_rng(0)
    truth = np.array(task.queries.groups.to_pylist())[:, None] == np.array(task.corpus.groups.to_pylist())
    scores = {
        name: truth + noise * random.normal(size=truth.shape) for name, noise in (("histogram", 2.0), (EVIL, 0.5))
    }
    results = [Result(name, answer_from(score.astype(np.float32), task), 1.0) for name, score in scores.items()]
    return Report(EVIL, task, [*results, Result("mass", None, 0.1, error=f"too short {EVIL}")])


class Reader(HTMLParser):
    """Counts tags, and checks that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_the_page_has_every_figure_and_no_script(report):
    reader = Reader()
    reader.feed(page(report))
    assert reader.open == []
    assert "script" not in reader.count
    queries = len(report.task.queries)
    assert reader.count["circle"] == 3 * queries  # two rows of dots, and one against the other
    for result in report.answered:
        for measure in MEASURES:
            assert f"{100 * result.mean(measure):.1f}" in reader.text
    assert f"failed: too short {EVIL}" in reader.text
    assert "Evaluation of " + EVIL in reader.text
    best, bar = (
        next(r for r in report.answered if r.name == name).answers.measures["AP"] for name in (EVIL, "histogram")
    )
    assert f"better on {(best > bar).sum()} queries, worse on {(best < bar).sum()}" in reader.text
    assert not re.search(r"https?://|src=|@import", page(report))


def test_the_folder(report, tmp_path):
    written = write_page(report, tmp_path / "report")
    assert written == tmp_path / "report" / "index.html"
    assert json.loads((tmp_path / "report" / "report.json").read_text()) == report.to_json()
    write_page(report, tmp_path / "report")  # again: its own files are replaced
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"mine: exists and holds no index\.html"):
        write_page(report, tmp_path / "mine")


def test_the_best_method_is_compared_with_every_other_one(report):
    """Not with the baseline alone; what is less interesting is folded, and chance is left out."""
    answers = report.results[0].answers
    more = [Result(name, answers, 1.0) for name in ("gru", "random", "mass")]
    found = page(Report("toy", report.task, [*report.results[:2], *more]))
    best, others = EVIL, ["histogram", "gru", "mass"]
    headings = re.findall(r"<details( open)?><summary><h2>(.*?) against (.*?)</h2>", found)
    assert [(unescape(mine), unescape(other)) for _, mine, other in headings] == [(best, other) for other in others]
    assert [bool(unfolded) for unfolded, _, _ in headings] == [True, False, False]
    assert found.count("Where they differ most") == len(others)


def test_nothing_to_compare_with(report):
    alone = Report("toy", report.task, report.results[:1])
    assert "against" not in page(alone).replace("Significant", "").split("Every query")[1]
