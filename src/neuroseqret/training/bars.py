"""Where the progress of a phase is shown: a bar on a terminal or in a notebook, lines in a log.

`new_bar` picks the place where people look. Set `NEUROSEQRET_PROGRESS=off` to show nothing.
"""

from __future__ import annotations

import html
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Protocol

_PAUSE = 0.2  # seconds between two updates in a notebook
_SILENT = 30.0  # seconds without a line in a log
_WIDE = 100  # columns of a terminal; a narrower one gets a shorter bar
_SHARE = 4  # columns of a percentage


class Bar(Protocol):
    """A place where the state of a phase is shown."""

    def update(self, share: float, figures: Sequence[str]) -> None:
        """Show the share that is done, from 0 to 1, and figures beside it; the first ones matter most, and the last."""

    def tell(self, text: str) -> None:
        """Say something once, where the bar itself does not stay in view."""

    def close(self, summary: str) -> None:
        """End the bar; `summary` is the line that remains where lines do, if it is not empty."""


def new_bar(phase: str, kept: bool = False) -> Bar | None:
    """Return a bar for the place where people look: notebook, terminal or lines; None if they want none.

    With `kept`, a terminal shows the summary where the bar was.
    """
    if os.environ.get("NEUROSEQRET_PROGRESS", "").lower() in ("off", "0"):
        return None
    if in_notebook():
        return NotebookBar(phase)
    return TerminalBar(phase, kept) if sys.stderr.isatty() else Lines(phase)


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class TerminalBar:
    """A bar on standard error that goes away at the end, or leaves its summary."""

    def __init__(self, phase: str, kept: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._kept, self._phase, self._console = kept, phase, Console(stderr=True)
        self._length = 20 if self._console.width >= _WIDE else 10
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=self._length),
            TaskProgressColumn(),
            TextColumn("{task.fields[figures]}", markup=False),
            console=self._console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=1.0, figures="")
        self.update(0.0, ())
        self._progress.start()

    def update(self, share: float, figures: Sequence[str]) -> None:
        room = self._console.width - self._length - _SHARE - 3  # there is a blank between columns
        phase = self._phase if len(self._phase) < room else f"{self._phase[: room - 2]}…"
        shown = fitting(figures, room - len(phase))
        self._progress.update(self._task, description=phase, completed=share, figures=shown)

    def tell(self, text: str) -> None:
        pass  # the bar shows it

    def close(self, summary: str) -> None:
        self._progress.stop()
        if self._kept and summary:
            print(summary, file=sys.stderr, flush=True)


def fitting(figures: Sequence[str], room: int) -> str:
    """Return as many figures as fit into so many letters, each of them whole; those in the middle go first.

    >>> fitting(["step 166", "loss 0.500", "best validation 0.2500", "about 50 s left"], 40)
    'step 166, loss 0.500, about 50 s left'
    """
    left = list(figures)
    while left and len(", ".join(left)) > room:
        del left[-2 if len(left) > 2 else -1]
    return ", ".join(left)


class NotebookBar:
    """A bar in the output of a cell, replaced by one line at the end; needs no widgets."""

    def __init__(self, phase: str) -> None:
        from IPython.display import HTML, display

        self._phase, self._html, self._last = phase, HTML, time.monotonic()
        self._handle: Any = display(self._content(0.0, ()), display_id=True)

    def _content(self, share: float, figures: Sequence[str]) -> Any:
        words = html.escape(f"{share:.0%}  {', '.join(figures)}")
        return self._html(
            f"<code>{html.escape(self._phase)} <progress max='1' value='{share:.3f}'></progress> {words}</code>"
        )

    def update(self, share: float, figures: Sequence[str]) -> None:
        if time.monotonic() - self._last >= _PAUSE:
            self._last = time.monotonic()
            self._handle.update(self._content(share, figures))

    def tell(self, text: str) -> None:
        pass  # the bar shows it

    def close(self, summary: str) -> None:
        self._handle.update(self._html(f"<code>{html.escape(summary)}</code>" if summary else ""))


class Lines:
    """One line on standard error at the end of a phase, and one for each half minute that it takes, for logs."""

    def __init__(self, phase: str) -> None:
        self._phase, self._last = phase, time.monotonic()

    def update(self, share: float, figures: Sequence[str]) -> None:
        if time.monotonic() - self._last >= _SILENT:
            self.tell(", ".join([f"{share:.0%}", *figures]))

    def tell(self, text: str) -> None:
        self._last = time.monotonic()
        print(f"{self._phase}: {text}", file=sys.stderr, flush=True)

    def close(self, summary: str) -> None:
        if summary:
            print(summary, file=sys.stderr, flush=True)
