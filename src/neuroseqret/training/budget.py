"""The clock of training budgets. `max_seconds` counts wall-clock time, as users expect.

Experiments count the processor time of the process instead, so that other work on the machine does not shorten what
they measure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_clock = time.monotonic


def now() -> float:
    """Return the seconds on the clock; only differences mean something."""
    return _clock()


@contextmanager
def of_processor_time() -> Iterator[None]:
    """Count processor time inside this block, in all threads."""
    global _clock
    before, _clock = _clock, time.process_time
    try:
        yield
    finally:
        _clock = before
