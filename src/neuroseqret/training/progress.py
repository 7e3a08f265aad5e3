"""The progress line of a training phase; silent if standard error is not a terminal."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from typing_extensions import Self


class ProgressDisplay:
    """Shows phase, steps, loss, best validation value, sequences per second and time left."""

    def __init__(self, phase: str, steps: int, max_seconds: float | None) -> None:
        self._max_seconds = max_seconds
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._progress.add_task(phase, total=steps, figures="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def resume(self, step: int) -> None:
        """Start the bar at a step other than 0."""
        self._progress.update(self._task, completed=step)

    def show(self, step: int, loss: float, best: float | None, sequences: int, seconds: float) -> None:
        """Show the figures of a step; `sequences` is the number of sequences per step."""
        if self._progress.disable:
            return
        figures = f"loss {loss:.3f}"
        if best is not None:
            figures += f"  validation {best:.4f}"
        if sequences and seconds > 0:
            figures += f"  {sequences * step / seconds:,.0f} sequences/s"
        if self._max_seconds is not None:
            figures += f"  {max(self._max_seconds - seconds, 0):.0f} s of budget"
        self._progress.update(self._task, completed=step, figures=figures)
