"""Cached properties of which every object computes its own, without waiting for others."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from functools import cached_property
from typing import TypeVar

T = TypeVar("T")


def unlocked(owner: type[T]) -> type[T]:
    """Take the lock off the cached properties of a class.

    Up to Python 3.11 a thread that computes one keeps all other threads from computing it for objects of their own.
    Eight threads that search then do less than one. Without the lock, two threads may compute the same value twice.
    """
    if sys.version_info < (3, 12):
        for value in vars(owner).values():
            if isinstance(value, cached_property):
                value.lock = nullcontext()  # type: ignore[attr-defined]  # not documented, and gone in Python 3.12
    return owner
