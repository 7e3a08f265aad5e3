"""The command line in this process: fast, and through the very entry point that the script has."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from unittest import mock

from neuroseqret.cli import console
from neuroseqret.cli.main import run


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def call(*arguments: str, entry: Callable[[], None] = run) -> Done:
    """Run `neuroseqret` (or another entry point) with the arguments, its output in a pipe."""
    return _call(arguments, entry, None)


def call_in_terminal(*arguments: str, columns: int = 80) -> Done:
    """Run `neuroseqret` with the arguments on a terminal that is this many columns wide."""
    return _call(arguments, run, columns)


def _call(arguments: Sequence[str], entry: Callable[[], None], columns: int | None) -> Done:
    stdout, stderr = io.StringIO(), io.StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["neuroseqret", *arguments]),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        mock.patch.object(console.out, "_width", columns or console.NO_LIMIT),
        mock.patch.object(console.out, "_force_terminal", columns is not None),
        mock.patch.object(console.out, "_file", None),
    ):
        try:
            entry()
        except SystemExit as stop:
            code = int(stop.code or 0)
    return Done(code, stdout.getvalue(), stderr.getvalue())
