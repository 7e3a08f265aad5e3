"""Let writers take turns: a lock on a file, on every platform, which the system releases when its holder dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOENT
from pathlib import Path

from filelock import FileLock, Timeout

from neuroseqret.errors import UserError

TIMEOUT = 60.0  # seconds
_PAUSE = 0.01  # seconds between two attempts


@contextmanager
def held(file: Path, wait: bool = True, timeout: float | None = None) -> Iterator[bool]:
    """Hold the lock during the block and give True; without `wait`, give False if another process holds it.

    A `UserError` says so if the file cannot be opened, or if the lock is not free within `timeout` seconds (`TIMEOUT`
    if None). A child that is forked in the block neither holds the lock nor frees it.
    """
    seconds = (TIMEOUT if timeout is None else timeout) if wait else 0.0
    # Not thread-local: it may be freed by another thread. No soft lock: that one stays when its holder is killed.
    lock = FileLock(file, thread_local=False, fallback_to_soft=False)
    try:
        if not file.parent.is_dir():  # the library would make it
            raise FileNotFoundError(ENOENT, "No such file or directory")
        lock.acquire(timeout=seconds, poll_interval=_PAUSE)
    except Timeout:
        if wait:
            raise UserError(
                f"{file}: another process has held this lock for {seconds:.0f} seconds; try again when it is done, or "
                "end it if it hangs"
            ) from None
        yield False
        return
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"{file}: the lock cannot be taken ({reason}); check the folder") from error
    owner = os.getpid()
    try:
        yield True
    finally:
        if os.getpid() == owner:
            lock.release()
