"""Slow, obvious readers: what the vectorised ones must agree with."""

from __future__ import annotations

import csv
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


def group_events(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[float, Any]]]:
    """Rows with `id`, `time`, `mark`, anywhere in the table, as lists of events in order of appearance."""
    sequences: dict[str, list[tuple[float, Any]]] = {}
    for row in rows:
        sequences.setdefault(str(row["id"]), []).append((float(row["time"]), row["mark"]))
    return sequences


def read_long_csv(path: Path) -> dict[str, list[tuple[float, int]]]:
    """A CSV with columns `id`, `time`, `mark` (numbers), by the standard library."""
    with path.open(newline="", encoding="utf-8") as lines:
        grouped = group_events(csv.DictReader(lines))
    return {id_: [(time, int(mark)) for time, mark in events] for id_, events in grouped.items()}


def strided(data: list[float], offset: int, size: tuple[int, int], stride: tuple[int, int]) -> list[list[float]]:
    """A two-dimensional tensor's numbers out of its storage, one by one."""
    rows, columns = size
    return [[data[offset + i * stride[0] + j * stride[1]] for j in range(columns)] for i in range(rows)]


def unseal(data: bytes) -> bytes:
    """A sealed Parquet file without its seal of 24 bytes before the footer."""
    (length,) = struct.unpack("<I", data[-8:-4])
    footer = len(data) - 8 - length
    assert data[footer - 24 : footer - 16] == b"NSRSEAL1"
    return data[: footer - 24] + data[footer:]
