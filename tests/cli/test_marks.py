"""New sequences come to a model with their marks by name, in every command that takes some."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cli.calling import call
from neuroseqret.data.sequences import EventSequences
from neuroseqret.index import Index
from neuroseqret.readers import write, write_folder
from simulated import simulate_retrieval

NAMES = ["buy", "search", "sell", "view", "wish"]


def renamed(sequences: EventSequences, names: list[str]) -> EventSequences:
    """The same events with other numbers for the same names."""
    new = np.array([names.index(name) for name in NAMES])
    marks = [new[marks].tolist() for _, marks in sequences.to_lists()]
    return sequences.with_column("marks", marks).with_meaning(names)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder, a model of it, its index; the queries with other numbers; and files with marks of today."""
    folder = tmp_path_factory.mktemp("marks")
    corpus, queries = (part.with_meaning(NAMES) for part in simulate_retrieval(groups=3, per_group=6, seed=1))
    write_folder(folder / "data", corpus, queries)
    other = NAMES[::-1]
    write_folder(folder / "other", renamed(corpus, other), renamed(queries, other))
    assert call("fit", str(folder / "data"), "--model", "histogram", "--out", str(folder / "model")).returncode == 0
    done = call("index", "create", str(folder / "model"), str(folder / "data"), "--out", str(folder / "index"))
    assert done.returncode == 0, done.stderr
    write(queries, folder / "queries.parquet")
    write(renamed(queries, other), folder / "other.parquet")
    (folder / "today.csv").write_text("id,time,mark\nt,0,wish\nt,1,view\nt,2,wish\n")  # numbers 0 and 1 of its own
    (folder / "dogs.csv").write_text("id,time,mark\ns,0,view\ns,1,cat\ns,2,dog\n")
    return folder


def test_embed(made: Path, tmp_path: Path) -> None:
    vectors = []
    for name in ("queries", "other"):
        out = tmp_path / f"{name}.parquet"
        done = call("embed", str(made / "model"), str(made / f"{name}.parquet"), "--out", str(out))
        assert done.returncode == 0, done.stderr
        vectors.append(pq.read_table(out))
    assert vectors[0].equals(vectors[1])


def test_index_and_search(made: Path, tmp_path: Path) -> None:
    answers = []
    for corpus, queries in (("data", "queries"), ("other", "other")):
        index = tmp_path / f"{corpus}-index"
        done = call("index", "create", str(made / "model"), str(made / corpus), "--out", str(index))
        assert done.returncode == 0, done.stderr
        assert call("index", "add", str(index), str(made / "today.csv")).returncode == 0
        assert Index.open(index).get("t")[0].marks.tolist() == [4, 3, 4]
        found = call("search", str(index), str(made / f"{queries}.parquet"), "--format", "json")
        assert found.returncode == 0, found.stderr
        answers.append(json.loads(found.stdout))
    assert answers[0] == answers[1]
    found = call("search", str(index), str(made / "today.csv"), "--format", "json", "-k", "1")
    assert json.loads(found.stdout)[0]["hits"][0]["id"] == "t"


def test_evaluate(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "cache"))
    figures = []
    for data in ("data", "other"):
        out = tmp_path / f"{data}.json"
        done = call("evaluate", str(made / data), "--method", str(made / "model"), "--json", str(out))
        assert done.returncode == 0, done.stdout
        figures.append(json.loads(out.read_text())["methods"][str(made / "model")]["AP"])
    assert figures[0] == figures[1]
    corpus, queries = simulate_retrieval(groups=3, per_group=6, seed=1)
    animals = ["ant", "bee", "cat", "dog", "eel"]
    write_folder(tmp_path / "animals", corpus.with_meaning(animals), queries.with_meaning(animals))
    done = call("evaluate", str(tmp_path / "animals"), "--method", str(made / "model"))
    assert done.returncode == 1
    assert "is unknown to the model, which knows buy, search, sell, view, wish" in " ".join(done.stdout.split())


def test_an_unknown_mark_is_an_error_that_names_it(made: Path, tmp_path: Path) -> None:
    model, index, dogs = str(made / "model"), str(made / "index"), str(made / "dogs.csv")
    for words in (
        ["embed", model, dogs, "--out", str(tmp_path / "e.parquet")],
        ["index", "add", index, dogs],
        ["index", "create", model, dogs, "--out", str(tmp_path / "index")],
        ["search", index, dogs],
    ):
        done = call(*words)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert "dogs.csv: sequence s: event 1: mark 'cat' is unknown to the model, which knows buy" in done.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("choice", ["drop", "keep"])
def test_unknown_marks_are_dropped_or_kept_on_request(made: Path, tmp_path: Path, choice: str) -> None:
    model, dogs, index = str(made / "model"), str(made / "dogs.csv"), str(tmp_path / "index")
    for words in (
        ["embed", model, dogs, "--out", str(tmp_path / "e.parquet")],
        ["index", "create", model, dogs, "--out", index],
        ["search", index, dogs, "--format", "trec"],
    ):
        done = call(*words, "--unknown-marks", choice)
        assert done.returncode == 0, done.stderr
    assert done.stdout.split()[:3] == ["s", "Q0", "s"]
    stored = Index.open(index).get("s")
    assert stored.marks.tolist() == ([3] if choice == "drop" else [3, 5, 5])
    assert call("index", "add", index, dogs, "--unknown-marks", choice).returncode == 0  # nothing new


def test_a_choice_that_does_not_exist_is_one_line(made: Path) -> None:
    done = call("search", str(made / "index"), str(made / "today.csv"), "--unknown-marks", "maybe")
    assert done.returncode == 2
    assert "unknown marks can be error, drop, keep, not 'maybe'" in done.stderr
