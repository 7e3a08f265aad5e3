"""TREC qrels and runs: out and in again, and lines that are wrong."""

from __future__ import annotations

from pathlib import Path

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.errors import DataError
from neuroseqret.readers import read_qrels, read_run, write_qrels, write_run
from strategies import PLAIN_IDS

GRADES = st.dictionaries(PLAIN_IDS, st.dictionaries(PLAIN_IDS, st.integers(-2, 5), min_size=1, max_size=4), max_size=4)
SCORES = st.dictionaries(
    PLAIN_IDS, st.dictionaries(PLAIN_IDS, st.floats(allow_nan=False), min_size=1, max_size=4), max_size=4
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("trec") / "file.txt"


@given(qrels=GRADES)
@settings(max_examples=30)
def test_qrels_survive(path: Path, qrels: dict[str, dict[str, int]]) -> None:
    write_qrels(qrels, path)
    assert read_qrels(path) == qrels


@given(run=SCORES)
@settings(max_examples=30)
def test_runs_survive_best_first(path: Path, run: dict[str, dict[str, float]]) -> None:
    write_run(run, path)
    back = read_run(path)
    assert back == run
    for documents in back.values():
        assert list(documents.values()) == sorted(documents.values(), reverse=True)


def test_other_tools_read_them(path: Path) -> None:
    write_run({"q": {"a": 0.5, "b": 2.0, "c": 1e-9}}, path, tag="toy")
    assert path.read_text().splitlines()[0] == "q Q0 b 1 2.0 toy"
    run = list(ir_measures.read_trec_run(str(path)))
    assert [(each.query_id, each.doc_id, each.score) for each in run] == [
        ("q", "b", 2.0),
        ("q", "a", 0.5),
        ("q", "c", 1e-9),
    ]
    write_qrels({"q": {"a": 1}}, path)
    assert next(iter(ir_measures.read_trec_qrels(str(path)))).relevance == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q 0 d 1\nq 0 d\n", "line 2: 3 fields; write 'query 0 document grade'"),
        ("q 0 d one\n", "line 1: grade 'one' is not an integer; write 0, 1, ..."),
        ("q 0 d 1\n\nq 0 d 1\n", "line 3: 'd' is judged twice for query 'q'; remove one of the lines"),
    ],
)
def test_wrong_qrels(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_qrels(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 d 1 x t\n", "line 1: rank '1' or score 'x' is not a number; write numbers"),
        ("q Q0 d 1 nan t\n", "line 1: score is NaN; write a number"),
        ("q Q0 d 1 3 t\nq Q0 d 2 2 t\n", "line 2: 'd' is ranked twice for query 'q'; remove one of the lines"),
    ],
)
def test_wrong_runs(path: Path, text: str, message: str) -> None:
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_run(path)
    assert str(caught.value) == f"{path}: {message}"


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        read_qrels(tmp_path / "nothing")
    (tmp_path / "x").write_bytes(b"q 0 \xff 1\n")
    with pytest.raises(DataError, match="not UTF-8"):
        read_qrels(tmp_path / "x")


def test_ids_with_blanks_have_no_place(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="id 'a b' cannot be written to a TREC file"):
        write_qrels({"q": {"a b": 1}}, tmp_path / "q.txt")
    assert not any(tmp_path.iterdir())


def test_files_of_other_editors(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbfq 0 d 1\r\nq 0 e 0\r\n")
    assert read_qrels(path) == {"q": {"d": 1, "e": 0}}
    path.write_text("kö 0 数据 1\n", encoding="utf-8")
    assert read_qrels(path) == {"kö": {"数据": 1}}
