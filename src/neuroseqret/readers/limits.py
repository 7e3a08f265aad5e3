"""Limits on what a file may ask for, checked before memory is taken, so that a small file cannot fill the machine.

A few bytes of a compressed or run-length encoded file can stand for gigabytes. Two environment variables raise the
limits for files that are meant to be so:

- `NEUROSEQRET_MAX_COLUMNS`: the most columns of a table, or keys of all JSON objects together (10,000);
- `NEUROSEQRET_MAX_EXPANSION`: how many times its size on disk a file may take in memory (500); up to a quarter of a
  gibibyte is always allowed.
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path

from neuroseqret.errors import DataError, UserError

COLUMNS, EXPANSION = "NEUROSEQRET_MAX_COLUMNS", "NEUROSEQRET_MAX_EXPANSION"
DEFAULTS = {COLUMNS: 10_000, EXPANSION: 500}
ALWAYS_ALLOWED = 1 << 28  # bytes
_BLOCK = 1 << 22


def limit(name: str) -> int:
    """Return a limit: the default, or what its environment variable says."""
    text = os.environ.get(name, "").strip()
    if not text:
        return DEFAULTS[name]
    if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) > 0):
        raise UserError(f"the environment variable {name} is {text!r}; set it to a whole number above 0")
    return int(text)


def check_columns(number: int, what: str = "columns") -> None:
    """Raise a `DataError` if a table has too many columns."""
    if number > (most := limit(COLUMNS)):
        raise DataError(
            f"has {number:,} {what}, more than {most:,}",
            remedy=f"leave columns out, or set {COLUMNS} to a larger number if it is right",
        )


def most_bytes(path: str | PathLike[str]) -> int:
    """Return how many bytes the content of a file may take in memory."""
    return max(ALWAYS_ALLOWED, limit(EXPANSION) * Path(path).stat().st_size)


def check_expansion(number: int, path: str | PathLike[str]) -> None:
    """Raise a `DataError` if the content of a file, `number` bytes of memory, is out of proportion to the file."""
    if number > most_bytes(path):
        raise DataError(
            f"its {Path(path).stat().st_size:,} bytes stand for {number:,} or more in memory",
            file=path,
            remedy=f"check where it comes from, or set {EXPANSION} to a larger number (now {limit(EXPANSION)}) if it "
            "is right",
        )


class Limited:
    """A stream of bytes that is decompressed as it is read: refuses to give more than the file's size allows."""

    closed = False

    def __init__(self, stream: object, path: str | PathLike[str]) -> None:
        self._stream: object = stream
        self._path, self._given = path, 0

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, or all."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_BLOCK), b""))
        block = bytes(self._stream.read(size))  # type: ignore[attr-defined]
        self._given += len(block)
        check_expansion(self._given, self._path)
        return block

    def readable(self) -> bool:
        """Return True, as `io.BufferedReader` asks."""
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer and return how many bytes were read, as `io.BufferedReader` asks."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()  # type: ignore[attr-defined]
        self.closed = True

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
