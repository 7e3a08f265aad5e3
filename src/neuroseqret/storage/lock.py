"""Let writers take turns: an advisory lock on a file, which the system releases when its holder dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroseqret.errors import UserError

TIMEOUT = 60.0  # seconds
_SHORTEST, _LONGEST = 0.001, 0.05  # seconds between two attempts
_open: set[int] = set()  # descriptors of the locks that this process holds or waits for


def _close_in_child() -> None:
    """Close what a child inherits by a fork: it would hold the lock for as long as it lives."""
    for descriptor in _open:
        os.close(descriptor)
    _open.clear()


os.register_at_fork(after_in_child=_close_in_child)


@contextmanager
def held(file: Path, wait: bool = True, timeout: float | None = None) -> Iterator[bool]:
    """Hold the lock during the block and give True; without `wait`, give False if another process holds it.

    A `UserError` says so if the file cannot be opened, or if the lock is not free within `timeout` seconds (`TIMEOUT`
    if None).
    """
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(f"{file}: the lock cannot be taken ({error.strerror or error}); check the folder") from error
    _open.add(descriptor)
    try:
        seconds = (TIMEOUT if timeout is None else timeout) if wait else 0.0
        taken = _take(descriptor, seconds)
        if wait and not taken:
            raise UserError(
                f"{file}: another process has held this lock for {seconds:.0f} seconds; try again when it is done, or "
                f"end it if it hangs ('fuser {file}' names it)"
            )
        yield taken
    finally:
        if descriptor in _open:  # otherwise this is a child that was forked in the block
            _open.discard(descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # also for a child that was forked before the descriptor was noted
            os.close(descriptor)


def _take(descriptor: int, seconds: float) -> bool:
    """Try to take the lock until the time is over; return whether it was taken."""
    end, pause = time.monotonic() + seconds, _SHORTEST
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            left = end - time.monotonic()
            if left <= 0:
                return False
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST)
