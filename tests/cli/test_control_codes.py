"""What comes from outside never moves the cursor, hides text or becomes markup: it is shown, on every output."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.table import Table

from cli.calling import call
from golden.golden_data import golden_data
from neuroseqret import methods, write
from neuroseqret.cli.console import VisibleConsole, file_name_of
from neuroseqret.cli.text_table import Column, lines_of
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import OBEYED, DataError, UserError, visible
from neuroseqret.index import Index

EVIL = "\x1b[2J\x1b]0;title\x07\u202eevil\u2066\x9b31m[bold]$x_1$"


def test_every_control_code_is_an_escape() -> None:
    assert visible("a\x1bb\x9b\u202e\u2028\ud800") == r"a\x1bb\x9b\u202e\u2028\ud800"
    assert visible("tab\tline\n", keep="\n") == "tab\\tline\n"
    assert visible("žluťoučký 漢字 🎵 é") == "žluťoučký 漢字 🎵 é"


@pytest.mark.parametrize("error", [UserError(f"x {EVIL}\ny"), DataError("flaw", file=EVIL, sequence=EVIL)])
def test_errors_are_one_visible_line(error: UserError) -> None:
    assert not OBEYED.search(str(error))


def test_tables_and_titles_on_a_console_are_visible(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(title="ok")
    table.add_column("name")
    table.add_row(EVIL.replace("[", "\\["))
    console = VisibleConsole(force_terminal=False)
    console.print(table)
    console.print(EVIL, markup=False)
    said = capsys.readouterr().out
    assert "evil" in said
    assert not OBEYED.search(said.replace("\n", ""))


def test_columns_have_room_for_escapes() -> None:
    lines, _ = lines_of([Column("id", ["a\x1b", "b"]), Column("next", ["1", "2"])], None)
    assert lines == ["id     next", "a\\x1b  1", "b      2"]


@pytest.fixture(scope="module")
def evil(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """An index whose ids, groups, marks and metadata hold control codes, and a file with one of them as a query."""
    folder = tmp_path_factory.mktemp("evil")
    _, corpus = golden_data()
    long = "漢" * 120
    made = EventSequences.from_arrays(
        corpus.times,
        corpus.marks,
        corpus.offsets,
        ids=[f"{EVIL}{long}{row}" for row in range(len(corpus))],
        groups=[f"{EVIL}{row % 2}" for row in range(len(corpus))],
        metadata={"note\x1b": [EVIL] * len(corpus)},
        mark_names=(EVIL, "b", "c", "d"),
    )
    Index.create(methods.make("histogram").fit(None, made), folder / "index", made)
    write(made[:1], folder / "queries.parquet")
    return folder / "index", folder / "queries.parquet"


def test_commands_show_them(evil: tuple[Path, Path]) -> None:
    index, queries = map(str, evil)
    table = call("search", index, queries, "-k", "2")
    assert table.returncode == 0, table.stderr
    info = call("data", "info", queries)
    wrong = call("search", index, queries, "--where", f"{EVIL} = 1")
    assert wrong.returncode == 2
    for said in (table, info, wrong):
        assert not OBEYED.search((said.stdout + said.stderr).replace("\n", ""))
    found = call("search", index, queries, "-k", "2", "--format", "json")
    assert not OBEYED.search(found.stdout.replace("\n", ""))
    assert json.loads(found.stdout)[0]["hits"][0]["id"].startswith(EVIL)  # and programs get them as they are


def test_a_long_id_in_another_script_does_not_stop_explanations() -> None:
    name = file_name_of("../../etc/\x1b" + "漢" * 300)
    assert len(name.encode()) <= 100
    assert "/" not in name
    assert "\x1b" not in name


def test_a_terminal_gets_no_raw_record() -> None:
    code = "from neuroseqret.cli.console import print_record; print_record('a\\x1b[2Jb')"
    leader, follower = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=follower, check=True, timeout=60)
    os.close(follower)
    assert b"a\\x1b[2Jb" in os.read(leader, 100)
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert piped.stdout == b"a\x1b[2Jb\n"
