"""The command line's frame: help, version, and mistakes that end in one line and exit code 2."""

from __future__ import annotations

import subprocess
import sys

import pytest

import neuroseqret

COMMAND = [sys.executable, "-c", "from neuroseqret.cli.main import run; run()"]


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def test_version_and_help() -> None:
    assert call("--version").stdout.strip() == f"neuroseqret {neuroseqret.__version__}"
    done = call()
    assert done.returncode == 0
    for command in ("fit", "embed", "index", "search", "evaluate", "experiment", "data", "demo"):
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["fit"], "Missing argument"),
        (["fit", "--model"], "requires an argument"),
        (["fit", "no-such-folder", "--out", "model"], "no-such-folder"),
        (["fit", ".", "--model", "histogram", "--preset", "paper", "--out", "model"], "has no preset 'paper'"),
        (["fit", "no-such-folder", "--out", "tests"], "tests: exists and holds no config.json"),
        (["data", "info", "no-such-file"], "no-such-file"),
        (["embed", "no-such-model", "x.parquet", "--out", "e.parquet"], "no-such-model"),
        (["evaluate", "no-such-folder", "--method", "random"], "no-such-folder"),
        (["search", "no-such-index", "x.parquet"], "no-such-index"),
    ],
)
def test_a_mistake_is_one_line_and_code_2(arguments: list[str], words: str) -> None:
    done = call(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert words in done.stderr
