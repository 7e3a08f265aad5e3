"""How far a phase of work is, in numbers and words; `bars` shows them.

Every number has one meaning. The share is that of the phase: of its steps, or of its time if there is a budget and it
runs out first. The time left is that of the whole training if it is known what follows the phase (`Following`), else
that of the phase.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import Self

from neuroseqret.training.bars import Bar, Lines, new_bar

T = TypeVar("T")
_SHORT = 0.5  # a notebook keeps no line of work that took fewer seconds than this
_KNOWN = 2.0  # seconds of steps after which it is known how long the rest takes
_LONG = 15.0  # seconds; a log is told how long the rest takes if that is longer
_FEW, _USUAL = 0.03, 2000  # below this share of its steps, or of these, a phase has hardly begun
#: What is trained in a phase, where its name says too little.
_TRAINED = {
    "warm_up": "the point process",
    "joint": "process and ranking together",
    "selection": "the weights of members",
    "head": "the metric",
    "contrastive": "the embedding",
    "hash": "the hash network",
    "cross": "the cross attention",
    "out_of_fold": "the metric without part {} of the queries",
}


def what_is_trained(phase: str) -> str:
    """Return in words what a phase of training trains.

    >>> what_is_trained("head"), what_is_trained("selection_1")
    ('the metric', 'the weights of members (division 2)')
    >>> what_is_trained("out_of_fold_0")  # for lists like those of new queries, which a second stage learns from
    'the metric without part 1 of the queries'
    """
    name, _, number = phase.rpartition("_")
    if name in _TRAINED and number.isdecimal():
        words = _TRAINED[name]
        return words.format(int(number) + 1) if "{}" in words else f"{words} (division {int(number) + 1})"
    return _TRAINED.get(phase, phase.replace("_", " "))


@dataclass(frozen=True)
class Following:
    """What a training still has to do after a phase: steps like those of the phase, in at most so many seconds."""

    steps: int = 0
    seconds: float = math.inf


def roughly(seconds: float) -> str:
    """Return a duration in words, as precise as an estimate is.

    >>> [roughly(x) for x in (0.4, 12, 48, 88, 100, 3500)]
    ['1 s', '12 s', '50 s', '90 s', '2 minutes', '58 minutes']
    """
    if seconds < 20:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds, -1):.0f} s" if seconds < 90 else f"{seconds / 60:.0f} minutes"


class ProgressDisplay:
    """Shows a phase of training: share done, step, loss, best validation value and time left.

    A log is told once per phase how long the training will take, unless that is not known (`following` is None).
    """

    def __init__(
        self, phase: str, steps: float, max_seconds: float | None, following: Following | None = Following()
    ) -> None:
        self._phase, self._steps, self._max_seconds, self._following = phase, steps, max_seconds, following
        self._bar: Bar | None = None
        self._resumed, self._step, self._seconds = 0, 0, 0.0
        self._figures: list[str] = []
        self._told = following is None

    def __enter__(self) -> Self:
        self._bar = new_bar(f"training {what_is_trained(self._phase)}", kept=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._bar is not None:
            self._bar.close(self.summary(stopped=kind is not None))

    def summary(self, stopped: bool = False) -> str:
        """Return the phase in one line."""
        timed_out = self._max_seconds is not None and self._seconds >= self._max_seconds and self._step < self._steps
        state = "stopped" if stopped else "ended by the time limit" if timed_out else "done"
        since = f" (from step {self._resumed:,})" if self._resumed else ""
        whole = f" of {self._steps:,}" if self._step < self._steps < math.inf else ""
        steps = "step" if self._step == 1 and not whole else "steps"
        spent = f"{self._step:,}{whole} {steps}{since} in {self._seconds:.1f} s"
        few = "too few steps to learn much" if timed_out and self._step < _FEW * min(self._steps, _USUAL) else ""
        title = f"training {what_is_trained(self._phase)}: {state}"
        return ", ".join(filter(None, (title, spent, *self._figures, few)))

    def resume(self, step: int) -> None:
        """Start at a step other than 0."""
        self._resumed = self._step = step

    def show(self, step: int, loss: float, best: float | None, seconds: float) -> None:
        """Show the figures of a step."""
        self._step, self._seconds = step, seconds
        self._figures = [f"loss {loss:.3f}"] + ([] if best is None else [f"best validation {best:.4f}"])
        if self._bar is None:
            return
        seconds_left = self.left()
        left = "" if seconds_left is None else f"about {roughly(seconds_left)} left"
        left += " of this phase" if left and self._following is None else ""
        shown = [f"step {step:,}", *self._figures, left]
        self._bar.update(self.share(step, seconds), [figure for figure in shown if figure])
        if not self._told and seconds >= _KNOWN:
            self._told = True
            if (seconds_left or 0.0) >= _LONG:
                self._bar.tell(left)

    def left(self) -> float | None:
        """Return how many seconds the phase will still take, and what follows it; None if nobody knows."""
        share = self.share(self._step, self._seconds)
        if not share:
            return None
        left = self._seconds * (1 - share) / share
        if self._following is None:
            return left
        return left + min(self._following.steps * self._seconds / max(self._step, 1), self._following.seconds)

    def share(self, step: int, seconds: float) -> float:
        """Return how much of the phase is done: the share of its steps or of its budget of time, the larger one."""
        used = 0.0 if self._max_seconds is None else seconds / self._max_seconds
        return min(1.0, max(step / max(self._steps, 1), used))


def remark(text: str) -> None:
    """Say something that is worth a line, in the place of the bars."""
    if (bar := new_bar(text, kept=True)) is not None:
        bar.close(text)


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show what is done in a block that has no steps, and how long it took if that was long."""
    bar, begun = new_bar(what, kept=True), time.monotonic()
    try:
        yield
    finally:
        took = time.monotonic() - begun
        if bar is not None:
            bar.close(f"{what}: {took:.1f} s" if took >= _SHORT else "")


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Iterate with a bar on a terminal or in a notebook, silently otherwise."""
    bar = new_bar(what)
    if bar is None or isinstance(bar, Lines) or not total:
        yield from items
        return
    begun, done = time.monotonic(), 0
    try:
        for item in items:
            yield item
            done += 1
            bar.update(done / total, [f"{done:,} of {total:,}"])
    finally:
        took = time.monotonic() - begun
        bar.close(f"{what}: {done:,} of {total:,} in {took:.1f} s" if took >= _SHORT else "")
