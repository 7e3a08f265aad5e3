"""The demo, whole, as a user runs it."""

from __future__ import annotations

import json
import shlex

import pytest
import typer
from typer.testing import CliRunner

from cli.calling import call
from neuroseqret.cli.demo import demo
from neuroseqret.errors import UserError

pytest.importorskip("music21")


@pytest.fixture
def app():
    made = typer.Typer()
    made.command()(demo)
    return made


def test_fast_demo_ends_with_a_model_that_is_ahead(app, tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    done = CliRunner().invoke(app, ["--fast", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.exception
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    ap = {name: values["AP"] for name, values in results["methods"].items()}
    assert ap["self"] > ap["histogram"] > ap["udtw"] > ap["random"]
    assert results["condition"] == "unseen"
    assert "NeuroSeqRet" in done.output
    assert "histogram-metric" in ap
    assert "Of the hardest, the median and the easiest kind" in done.output
    spent = results["milliseconds_per_query"]["self"]
    assert 0 < spent["embedding"] < spent["whole"]
    # The commands at the end can be pasted: the first two of those for one's own data are run.
    lines = [line for line in done.output.splitlines() if line.startswith("neuroseqret ")]
    prepare, fit = (shlex.split(next(line for line in lines if word in line)) for word in ("data prepare", " fit "))
    assert call(*prepare[1:]).returncode == 0
    done_fit = call(*["1" if word == "60" else word for word in fit[1:]])
    assert done_fit.returncode == 0, done_fit.stderr
    assert f"neuroseqret serve {tmp_path / 'demo' / 'index'}" in done.output
    assert (tmp_path / "demo" / "hits.png").read_bytes()[:4] == b"\x89PNG"
    for name in ("data/queries.parquet", "model/config.json", "index/index.json"):
        assert (tmp_path / "demo" / name).exists()


def test_open_serves_an_index_that_is_there(app, tmp_path, monkeypatch):
    (tmp_path / "demo" / "index").mkdir(parents=True)
    (tmp_path / "demo" / "index" / "index.json").write_text("{}")
    seen = []
    monkeypatch.setattr("neuroseqret.serving.running.run", lambda settings, started: (seen.append(settings.index),
                        started("http://127.0.0.1:1")))  # fmt: skip
    monkeypatch.setattr("webbrowser.open", seen.append)
    done = CliRunner().invoke(app, ["--open", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.exception
    assert seen == [tmp_path / "demo" / "index", "http://127.0.0.1:1"]


def test_a_file_in_the_way(app, tmp_path):
    (tmp_path / "demo").write_text("mine")
    done = CliRunner().invoke(app, ["--out", str(tmp_path / "demo")])
    assert isinstance(done.exception, UserError)
    assert (tmp_path / "demo").read_text() == "mine"
