"""Text files, plain or compressed with gzip or zstd (recognised by their first bytes)."""

from __future__ import annotations

import codecs
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from neuroseqret.errors import DataError
from neuroseqret.readers.limits import Limited

BYTE_ORDER_MARK = codecs.BOM_UTF8
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def open_bytes(path: str | PathLike[str]) -> Any:
    """Open the file as a stream of bytes, decompressed."""
    file = Path(path)
    try:
        if file.exists() and not (file.is_file() or file.is_dir()):  # it is read more than once
            raise DataError("a pipe or device, not a file", file=path, remedy="save its content to a file first")
        with file.open("rb") as stream:
            head = stream.read(4)
    except FileNotFoundError as error:
        raise DataError("no such file", file=path, remedy="check the path") from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path, remedy="check the path") from error
    for magic, compression in _COMPRESSIONS.items():
        if head.startswith(magic):
            return Limited(pa.input_stream(str(path), compression=compression), path)
    return pa.input_stream(str(path), compression=None)


def head_of(path: str | PathLike[str], size: int = 1 << 16) -> bytes:
    """Read the first bytes, decompressed."""
    with open_bytes(path) as stream:
        try:
            return bytes(stream.read(size))
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"cannot be decompressed ({error})", file=path, remedy="compress it again") from error


def head_text(path: str | PathLike[str]) -> str:
    """Read the first mebibyte as text, without a byte order mark."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()  # the last character may be cut off
    try:
        return decoder.decode(head_of(path, 1 << 20))
    except UnicodeDecodeError as error:
        raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8") from error


def whole_text(path: str | PathLike[str]) -> str:
    """Read the whole file as text."""
    with open_bytes(path) as stream:
        try:
            return bytes(stream.read()).decode("utf-8-sig")
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"cannot be read ({error})", file=path, remedy="write it again") from error
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8 text", file=path, remedy="save it as UTF-8") from error
