"""The clock of training budgets. `max_seconds` counts wall-clock time, as users expect.

Experiments count the processor time of the process instead, so that other work on the machine does not shorten what
they measure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

_clock = time.monotonic


def now() -> float:
    """Return the seconds on the clock; only differences mean something."""
    return _clock()


def of_processor_time() -> AbstractContextManager[None]:
    """Count processor time inside this block, in all threads."""
    return counted_by(time.process_time)


@contextmanager
def counted_by(clock: Callable[[], float]) -> Iterator[None]:
    """Use another clock inside this block."""
    global _clock
    before, _clock = _clock, clock
    try:
        yield
    finally:
        _clock = before
