"""Seal a Parquet file: a checksum of the whole file, kept where Parquet readers do not look, so that damage is found.

Parquet's own checksums cover the pages, but neither their headers nor the footer (which holds column names and mark
names). The seal is 24 bytes between the last page and the footer. Parquet readers follow the positions in the footer
and never see it; a tool that rewrites the file drops it. The seal detects accidents, not forgery.

    PAR1 | pages ... | NSRSEAL1 | length of the rest | CRC-32 of the rest | footer | footer's length | PAR1
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import BinaryIO

MARK = b"NSRSEAL1"
_LENGTHS = struct.Struct("<8sQQ")  # mark, bytes apart from the seal, CRC-32
_BLOCK = 1 << 20


def seal(path: Path) -> None:
    """Add a seal to a Parquet file that has none."""
    with path.open("r+b") as stream:
        footer_at = _footer_position(stream)
        assert footer_at is not None, "the file was just written as Parquet"
        stream.seek(footer_at)
        tail = stream.read()
        size = footer_at + len(tail)
        crc = zlib.crc32(tail, _crc(stream, footer_at))
        stream.seek(footer_at)
        stream.write(_LENGTHS.pack(MARK, size, crc) + tail)


def is_sealed(path: Path) -> bool:
    """Return True if the file has a seal, whether it matches or not."""
    with path.open("rb") as stream:
        return _read_seal(stream) is not None


def is_broken(path: Path) -> bool:
    """Return True if the file has a seal that does not match its bytes."""
    with path.open("rb") as stream:
        found = _read_seal(stream)
        if found is None:
            return False
        footer_at, size, crc = found
        stream.seek(footer_at)
        tail = stream.read()
        pages = footer_at - _LENGTHS.size
        return size != pages + len(tail) or crc != zlib.crc32(tail, _crc(stream, pages))


def _read_seal(stream: BinaryIO) -> tuple[int, int, int] | None:
    """Return where the footer begins, and the size and checksum in the seal before it; None if there is no seal."""
    footer_at = _footer_position(stream)
    if footer_at is None or footer_at < _LENGTHS.size:
        return None
    stream.seek(footer_at - _LENGTHS.size)
    mark, size, crc = _LENGTHS.unpack(stream.read(_LENGTHS.size))
    return (footer_at, size, crc) if mark == MARK else None


def _footer_position(stream: BinaryIO) -> int | None:
    """Return where the footer begins, or None if this is not a Parquet file."""
    size = stream.seek(0, 2)
    if size < 12:
        return None
    stream.seek(size - 8)
    length, magic = struct.unpack("<I4s", stream.read(8))
    return size - 8 - length if magic == b"PAR1" and length <= size - 12 else None


def _crc(stream: BinaryIO, stop: int) -> int:
    """Return the CRC-32 of the first `stop` bytes."""
    stream.seek(0)
    crc, left = 0, stop
    while left > 0:
        block = stream.read(min(_BLOCK, left))
        if not block:
            break
        crc = zlib.crc32(block, crc)
        left -= len(block)
    return crc
