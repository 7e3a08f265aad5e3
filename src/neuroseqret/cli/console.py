"""Consoles of the command line: results go to standard output, progress bars and remarks to standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

T = TypeVar("T")
NO_LIMIT = 100_000  # columns

# No emoji codes: a mark or a file may be named `:on:`.
# A pipe or a file has no width, so that nothing is wrapped or cut there.
out = Console(
    highlight=False,
    emoji=False,
    soft_wrap=not sys.stdout.isatty(),
    width=None if sys.stdout.isatty() else NO_LIMIT,
)
remarks = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def window_width() -> int | None:
    """Return the width of the terminal that standard output is, or None if it is a pipe or a file."""
    return out.width if out.is_terminal else None


def progress(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate with a progress bar if standard error is a terminal, silently otherwise."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=remarks, transient=True, disable=not remarks.is_terminal) as bar:
        yield from bar.track(items, total=total, description=what)
