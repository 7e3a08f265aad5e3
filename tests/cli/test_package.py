"""The command line as a package: `python -m neuroseqret`, and the map of files in its docstring."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import neuroseqret
from neuroseqret import cli

FOLDER = Path(cli.__file__).parent


def module(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "neuroseqret", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env=os.environ | {"COLUMNS": str(columns)}
    )


def test_the_module_is_the_command() -> None:
    assert module("--version").stdout.strip() == f"neuroseqret {neuroseqret.__version__}"
    done = module("search", "no-such-index", "queries.parquet")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert done.stderr.startswith("neuroseqret: no-such-index: ")


def test_help_fits_into_80_columns() -> None:
    for command in ("fit", "search", "evaluate", "data prepare"):
        assert max(map(len, module(*command.split(), "--help").stdout.splitlines())) <= 80


def test_the_docstring_names_every_file_and_no_other() -> None:
    named = set(re.findall(r"`(\w+\.py)`", cli.__doc__ or ""))
    there = {path.name for path in FOLDER.glob("*.py")} - {"__init__.py"}
    assert named == there, "update the docstring of neuroseqret/cli/__init__.py"
