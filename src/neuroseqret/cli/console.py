"""Consoles of the command line: results go to standard output, progress bars and remarks to standard error."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table

from neuroseqret.errors import OBEYED, visible

T = TypeVar("T")
NO_LIMIT = 100_000  # columns


class VisibleConsole(Console):
    """A console on which nothing that comes from outside moves the cursor or hides text: control codes are shown."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for text, style, control in super().render(renderable, options):
            yield Segment(text, style, control) if control else Segment(visible(text, keep="\n"), style)


# No emoji codes: a mark or a file may be named `:on:`.
# A pipe or a file has no width, so that nothing is wrapped or cut there.
out = VisibleConsole(
    highlight=False,
    emoji=False,
    soft_wrap=not sys.stdout.isatty(),
    width=None if sys.stdout.isatty() else NO_LIMIT,
)
remarks = VisibleConsole(stderr=True, highlight=False, emoji=False, soft_wrap=True)


def window_width() -> int | None:
    """Return the width of the terminal that standard output is, or None if it is a pipe or a file."""
    return out.width if out.is_terminal else None


def progress(
    items: Iterable[T], what: str, total: int | None = None, count: Callable[[T], int] = lambda item: 1
) -> Iterator[T]:
    """Iterate with a progress bar if standard error is a terminal, silently otherwise.

    `count` says how much of the total an item is.
    """
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=remarks, transient=True, disable=not remarks.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            yield item
            bar.advance(task, count(item))


def print_table(table: Table) -> None:
    """Print a table; without the blanks at the ends of its lines where they would be kept, in a pipe or a file."""
    if out.is_terminal:
        out.print(table)
        return
    with out.capture() as captured:
        out.print(table)
    typer.echo("\n".join(line.rstrip() for line in captured.get().split("\n")), nl=False)


def print_json(content: Any) -> None:
    """Print a value as JSON, with characters that a terminal would obey as JSON's own escapes."""
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False, default=str)
    typer.echo("\n".join(OBEYED.sub(lambda found: json.dumps(found.group())[1:-1], line) for line in text.split("\n")))


def print_record(line: str) -> None:
    """Print a line that programs read: exactly as it is to a pipe or a file, visible on a terminal."""
    print(visible(line) if sys.stdout.isatty() else line)  # typer would take codes out of what a pipe gets


def file_name_of(text: str, most: int = 100) -> str:
    """Return a name for a file after an id: no separators, no control codes, and at most `most` bytes."""
    plain = re.sub(r"[^\w.-]+", "_", text)
    return plain.encode()[:most].decode(errors="ignore")
