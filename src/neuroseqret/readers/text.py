"""Text files, plain or compressed with gzip or zstd (told by their first bytes)."""

from __future__ import annotations

import codecs
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from neuroseqret.errors import DataError

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def open_bytes(path: str | PathLike[str]) -> Any:
    """The file's bytes, decompressed."""
    try:
        with Path(path).open("rb") as stream:
            head = stream.read(4)
    except FileNotFoundError as error:
        raise DataError("no such file", file=path, remedy="check the path") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path, remedy="check the path") from error
    for magic, compression in _COMPRESSIONS.items():
        if head.startswith(magic):
            return pa.input_stream(str(path), compression=compression)
    return pa.input_stream(str(path), compression=None)


def head_of(path: str | PathLike[str], size: int = 1 << 16) -> bytes:
    """The first bytes, decompressed."""
    with open_bytes(path) as stream:
        try:
            return bytes(stream.read(size))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"cannot be decompressed ({error})", file=path, remedy="compress it again") from error


def first_lines(path: str | PathLike[str], count: int) -> list[str]:
    """The first lines that are not blank (as far as they fit in a mebibyte), without a byte order mark."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()  # a character may be cut at the end of the mebibyte
    try:
        lines = decoder.decode(head_of(path, 1 << 20)).split("\n")
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8") from error
    return [line.removesuffix("\r") for line in lines if line.rstrip("\r")][:count]


def whole_text(path: str | PathLike[str]) -> str:
    """All of the file as text."""
    with open_bytes(path) as stream:
        try:
            return bytes(stream.read()).decode("utf-8-sig")
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"cannot be read ({error})", file=path, remedy="write it again") from error
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8") from error
