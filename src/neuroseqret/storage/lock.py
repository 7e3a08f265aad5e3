"""Let writers take turns: an advisory lock on a file, which the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(file: Path, wait: bool = True) -> Iterator[bool]:
    """Hold the lock during the block and give True; without `wait`, give False if another process holds it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
    finally:
        os.close(descriptor)
