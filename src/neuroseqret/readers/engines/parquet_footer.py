"""How many values a Parquet file says it holds, read from its footer without the decoder.

A run-length encoded column of a few bytes can stand for billions of values, so their number is checked before anything
is decoded. Arrow's own look-ups abort the process over a damaged footer; this reader of Thrift's compact encoding
raises a `ValueError`.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

_MOST_DEPTH = 32
_BYTES_OF = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 4, 7: 4}  # by physical type; texts count with their offsets
_ROW_GROUPS, _COLUMNS, _META, _TYPE, _VALUES, _UNCOMPRESSED = 4, 1, 3, 1, 5, 6  # fields of the footer's structures


def decoded_bytes(path: Path) -> int:
    """Return about how many bytes the columns of a file take when they are decoded, at least."""
    with path.open("rb") as stream:
        stream.seek(-8, 2)
        length, magic = struct.unpack("<I4s", stream.read(8))
        if magic != b"PAR1" or length > stream.tell() - 8:
            raise ValueError("not a Parquet file")
        stream.seek(-8 - length, 2)
        footer = _Compact(stream.read(length)).structure()
    try:
        return sum(_bytes_of(column.get(_META, {})) for group in footer[_ROW_GROUPS] for column in group[_COLUMNS])
    except (AttributeError, LookupError, TypeError) as error:  # a field has another type than it should
        raise ValueError("damaged footer") from error


def _bytes_of(column: dict[int, Any]) -> int:
    values = max(column[_VALUES], 0) * _BYTES_OF.get(column[_TYPE], 8)
    return int(max(values, column[_UNCOMPRESSED]))


class _Compact:
    """A reader of Thrift's compact encoding: structures as dictionaries by field number."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def structure(self, depth: int = 0) -> dict[int, Any]:
        if depth > _MOST_DEPTH:
            raise ValueError("nested too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else _signed(self._varint())
            fields[number] = (kind == 1) if kind in (1, 2) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (1, 2, 3):
            return self._byte()
        if kind in (4, 5, 6):
            return _signed(self._varint())
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            size = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1) for _ in range(self._within(size))]
        if kind == 12:
            return self.structure(depth + 1)
        raise ValueError(f"unknown type {kind}")

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise ValueError("a number without end")

    def _byte(self) -> int:
        return self._bytes(1)[0]

    def _bytes(self, size: int) -> bytes:
        self._at += self._within(size)
        return self._data[self._at - size : self._at]

    def _within(self, size: int) -> int:
        if size > len(self._data) - self._at:
            raise ValueError("cut off")
        return size


def _signed(zigzag: int) -> int:
    return (zigzag >> 1) ^ -(zigzag & 1)
