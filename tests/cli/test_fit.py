"""`fit`, called as a user would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cli.calling import call
from neuroseqret.cli.fit import _clock
from neuroseqret.data.sequences import EventSequences
from neuroseqret.methods.registry import make
from neuroseqret.readers import write_folder
from simulated import simulate_retrieval


def test_fit_into_the_folder_one_is_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=4, seed=1))
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path / "model")
    for _ in range(2):  # the second replaces the first
        done = call("fit", "../data", "--model", "histogram", "--out", ".")
        assert done.returncode == 0, done.stderr
        assert sorted(path.name for path in Path().iterdir()) == ["config.json", "model.safetensors"]
    (tmp_path / "model" / "notes.txt").write_text("mine")
    done = call("fit", "no-such-folder", "--model", "histogram", "--out", ".")
    assert ".: holds 'notes.txt', which would be lost; move it away or choose another name" in done.stderr


def test_fit_says_how_the_clock_runs() -> None:
    corpus = EventSequences.from_lists([([0.0, 3.0, 6.0, 9.0], [0, 1, 0, 1])] * 3, time_unit="days")
    histogram, random = (make(name).fit(None, corpus).to_state().card for name in ("histogram", "random"))
    assert _clock(histogram) == "gaps between events: typically 3 days, mostly 3 to 3 days"
    assert _clock(histogram.model_copy(update={"first_stage": histogram, "time_scale": None})) == _clock(histogram)
    assert _clock(random) is None
    seconds = histogram.model_copy(update={"time_unit": "seconds"})
    assert _clock(seconds) == "gaps between events: typically 3 s, mostly 3 to 3 s"


def test_fit_ends_with_the_place_of_the_model_and_the_next_command(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=6, seed=1))
    out = tmp_path / "my model"
    done = call("fit", str(tmp_path / "data"), "--model", "gru", "--max-seconds", "1", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert re.match(r"training gru on \d+ sequences with \d+ train and \d+ validation queries\n", done.stderr)
    score, written, following = done.stderr.splitlines()[-3:]
    assert re.fullmatch(r"\S+ of the validation queries: [\d.]+ %( \(in the corpus that was learned from\))?", score)
    assert f"written to {out}" in written
    assert following == f"next: neuroseqret index create '{out}' {tmp_path / 'data'} --out index"
    done = call("fit", str(tmp_path / "data"), "--model", "mass", "--out", str(tmp_path / "mass"))
    assert done.stderr.splitlines()[-1].startswith("next: neuroseqret evaluate ")


def test_interrupted_and_run_again_says_that_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=6, seed=1))
    words = ("fit", str(tmp_path / "data"), "--model", "gru", "--max-seconds", "1", "--out", str(tmp_path / "model"))

    def interrupted(*_: object, checkpoint: Path, **__: object) -> None:
        checkpoint.mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("neuroseqret.baselines.gru.GRU.fit", interrupted)
        done = call(*words)
    assert done.returncode == 130
    assert "stopped; run the same command again to go on from here" in done.stderr
    done = call(*words)
    assert done.returncode == 0, done.stderr
    assert "continuing the run that was interrupted" in done.stderr
    assert not (tmp_path / "model.checkpoint").exists()


def test_a_first_stage_is_for_second_stages(tmp_path: Path) -> None:
    write_folder(tmp_path / "data", *simulate_retrieval(groups=3, per_group=6, seed=1))
    call("fit", str(tmp_path / "data"), "--model", "histogram", "--out", str(tmp_path / "first"))
    words = ("fit", str(tmp_path / "data"), "--first", str(tmp_path / "first"), "--out", str(tmp_path / "model"))
    done = call(*words, "--model", "gru")
    assert (done.returncode, "--first is for --model cross and hash-cross" in done.stderr) == (2, True)
    done = call(*words, "--model", "cross")
    assert (done.returncode, "a 'histogram' model cannot be a first stage" in done.stderr) == (2, True)


def test_scripts_get_json(tmp_path: Path) -> None:
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=1)
    write_folder(tmp_path / "data", corpus, queries)
    data, model, vectors = (str(tmp_path / name) for name in ("data", "model", "vectors.parquet"))
    made = json.loads(call("fit", data, "--model", "gru", "--max-seconds", "1", "--out", model, "--json").stdout)
    assert made["model"] == model
    assert 0 <= made["validation"]["AP"] <= 1
    assert made["next"].startswith("neuroseqret index create ")
    written = json.loads(call("embed", model, f"{data}/corpus.parquet", "--out", vectors, "--json").stdout)
    assert (written["file"], written["sequences"]) == (vectors, len(corpus))
    assert written["dimension"] > 0
    call("index", "create", model, data, "--out", str(tmp_path / "index"))
    words = ("search", str(tmp_path / "index"), f"{data}/queries.parquet", "--limit", "2", "-k", "3", "--json")
    assert [len(answer["hits"]) for answer in json.loads(call(*words).stdout)] == [3, 3]
    assert "histogram" in json.loads(call("evaluate", data, "--json", "-").stdout)["methods"]
    csv = str(tmp_path / "corpus.csv")
    converted = json.loads(call("data", "convert", f"{data}/corpus.parquet", csv, "--json").stdout)
    assert converted["sequences"] == len(corpus)


def test_a_table_whose_columns_are_not_known_is_prepared_first(tmp_path: Path) -> None:
    table = tmp_path / "events.csv"
    table.write_text("who,at,what\na,1,x\na,2,y\n")
    done = call("fit", str(table), "--out", str(tmp_path / "model"))
    assert f"neuroseqret data prepare --from {table} --column id=..." in done.stderr
    assert "--column" not in call("fit", str(tmp_path / "none.csv"), "--out", str(tmp_path / "model")).stderr
