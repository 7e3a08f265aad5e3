"""`search`, called as a user would, on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from cli.calling import call, call_in_terminal
from cli.conftest import LONG
from neuroseqret.cli.hits_output import heading
from neuroseqret.index import Hits, Index
from neuroseqret.index.hit import SearchReport
from neuroseqret.readers import read


def queries_of(folder: Path) -> str:
    return str(folder / "data" / "queries.parquet")


def test_ids_are_whole_in_a_pipe_and_on_a_narrow_terminal(searchable: Path) -> None:
    words = ("search", str(searchable / "index"), queries_of(searchable), "--limit", "1", "-k", "100")
    piped = call(*words)
    narrow = call_in_terminal(*words, columns=40)
    every = set(Index.open(searchable / "index").get([LONG]).ids.to_pylist())
    for done in (piped, narrow):
        assert done.returncode == 0, done.stderr
        assert every <= set(done.stdout.split())
    assert "which is long" in piped.stdout  # a pipe has no width
    assert "which is long" not in narrow.stdout
    assert "not shown: " in narrow.stderr
    assert "title" in narrow.stderr.partition("not shown: ")[2]


def test_a_heading_that_does_not_fit_has_two_lines() -> None:
    hits = Hits([], "a-long-id", SearchReport("cells", 1200, 300, 0))
    assert heading(hits, "runner") == ["query a-long-id (runner): compared with 300 of 1,200 (cells)"]
    assert heading(hits, "runner", 40) == ["query a-long-id (runner):", "  compared with 300 of 1,200 (cells)"]


def test_columns_with_lists_are_hidden(searchable: Path) -> None:
    done = call("search", str(searchable / "index"), queries_of(searchable), "--limit", "1")
    assert "title" in done.stdout
    assert "tags" not in done.stdout
    answer = call("search", str(searchable / "index"), queries_of(searchable), "--limit", "1", "--format", "json")
    assert json.loads(answer.stdout)[0]["hits"][0]["metadata"]["tags"] == ["x", "y"]


def test_the_group_of_the_query_is_shown(searchable: Path) -> None:
    queries = read(queries_of(searchable))
    done = call("search", str(searchable / "index"), queries_of(searchable), "--limit", "2")
    assert [queries[row].group for row in (0, 1)] == re.findall(r"^query \S+ \((.+?)\): ", done.stdout, re.MULTILINE)
    answer = call("search", str(searchable / "index"), queries_of(searchable), "--limit", "2", "--format", "json")
    assert [one["group"] for one in json.loads(answer.stdout)] == [queries[row].group for row in (0, 1)]


def test_queries_are_chosen_by_id_and_limited(searchable: Path) -> None:
    ids = read(queries_of(searchable)).ids.to_pylist()
    words = ("search", str(searchable / "index"), queries_of(searchable), "--format", "json")
    asked = [one["query"] for one in json.loads(call(*words, "--query", ids[3], "--query", ids[1]).stdout)]
    assert asked == [ids[3], ids[1]]
    assert [one["query"] for one in json.loads(call(*words, "--limit", "2").stdout)] == ids[:2]
    done = call(*words, "--query", "nobody")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert f"holds no sequence 'nobody'; its ids are {ids[0]}, " in done.stderr


@pytest.mark.parametrize("index", ["index", "windows"])
def test_an_indexed_sequence_is_a_query_and_not_its_own_hit(searchable: Path, index: str) -> None:
    done = call("search", str(searchable / index), "--id", LONG, "--format", "json", "-k", "100")
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)
    assert answer["query"] == LONG
    found = {hit["id"] for hit in answer["hits"]}
    assert len(found) == Index.open(searchable / "index").info()["sequences"] - 1
    assert LONG not in found
    assert f"query {LONG} (" in call("search", str(searchable / index), "--id", LONG).stdout


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "name either a file of query sequences, or sequences of the index with --id"),
        (["x.parquet", "--id", "a"], "name either a file of query sequences, or sequences of the index with --id"),
        (["--id", "a", "--limit", "1"], "leave them out with --id"),
        (["--id", "nobody"], "holds no sequence 'nobody'"),
    ],
)
def test_what_to_search_with_is_said_once(searchable: Path, words: list[str], complaint: str) -> None:
    done = call("search", str(searchable / "index"), *words)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert complaint in done.stderr


@pytest.mark.parametrize("form", ["table", "json", "trec"])
def test_an_empty_answer_says_why(searchable: Path, form: str) -> None:
    condition = "title = 'GK'"
    words = ("search", str(searchable / "index"), queries_of(searchable), "--limit", "1", "--format", form)
    done = call(*words, "--where", condition)
    assert done.returncode == 0
    assert f": no sequence matches {condition}" in (done.stdout if form == "table" else done.stderr)


def test_times_of_windows_have_a_unit(searchable: Path) -> None:
    done = call("search", str(searchable / "windows"), queries_of(searchable), "--limit", "1", "-k", "2")
    assert re.search(r" \d+ to \d+  +[\d.]+( \w+)? to [\d.]+ (s|min) ", done.stdout), done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_on_a_real_terminal_of_80_columns(searchable: Path) -> None:
    import fcntl
    import pty
    import struct
    import subprocess
    import termios

    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "neuroseqret", "search", str(searchable / "index"), queries_of(searchable)]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    process = subprocess.Popen([*command, "--limit", "1", "-k", "100"], stdout=below, stderr=below, env=environment)
    os.close(below)
    said = b""
    while True:
        try:
            part = os.read(above, 65536)
        except OSError:  # the end of a pseudo-terminal
            break
        if not part:
            break
        said += part
    os.close(above)
    assert process.wait(timeout=60) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    assert any(LONG in line for line in lines)  # the terminal wraps it; it is not cut
    assert all(len(line) <= 80 for line in lines if LONG not in line and not line.startswith("query"))
