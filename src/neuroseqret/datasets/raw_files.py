"""Find and read raw files, with errors that say what was expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import FloatArray
from neuroseqret.errors import DataError

T = TypeVar("T")
#: Wraps an iteration over a known number of items to show progress.
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def track(items: Collection[T], progress: Progress | None) -> Iterable[T]:
    """Return the items, wrapped to show progress if wanted."""
    return items if progress is None else progress(items, len(items))


def folder(raw: Path) -> Path:
    """Return the folder, or raise a `DataError` if there is none."""
    if not raw.is_dir():
        raise DataError("no such folder", file=raw, remedy="give the folder with the raw files")
    return raw


def find(raw: Path, *patterns: str) -> list[Path]:
    """Return all files under the folder that match one of the patterns, sorted, without hidden ones."""
    found = {path for pattern in patterns for path in folder(raw).rglob(pattern) if path.is_file()}
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(raw).parts))


def nothing_found(raw: Path, expected: str) -> DataError:
    """Return the error for a folder without raw files of the set."""
    return DataError("holds no raw files of this set", file=raw, remedy=f"expected {expected}")


def text(path: Path) -> str:
    """Read a text file, UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"not a text file ({error.reason} at byte {error.start})", file=path, remedy="save it as UTF-8"
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path, remedy="check the path") from error


def json_file(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON ({error.msg} at line {error.lineno})", file=path, remedy="download it again"
        ) from error
    except RecursionError as error:
        raise DataError("not JSON (nested too deeply)", file=path, remedy="download it again") from error


def json_object(path: Path) -> dict[str, Any]:
    """Read a JSON file that must hold an object."""
    content = json_file(path)
    if not isinstance(content, dict):
        raise DataError("not a JSON object", file=path, remedy="download it again")
    return content


def number_column(table: pa.Table, name: str, path: Path) -> FloatArray:
    """Return a column of numbers as float64; text and empty cells are errors."""
    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(f"column {name!r} holds text, not numbers", file=path, remedy="download it again")
    if column.null_count:
        raise DataError(f"column {name!r} has {column.null_count} empty cells", file=path, remedy="download it again")
    return column.to_numpy().astype(np.float64)


def numbers(values: list[str], path: Path, line: int, what: str) -> FloatArray:
    """Return finite numbers from text, or raise a `DataError` with the line (`line` is that of the first value)."""
    try:
        made = np.array(values, dtype=np.float64)
    except ValueError:
        made = np.array([_number(v) for v in values])
    if not np.isfinite(made).all():
        at = int(np.flatnonzero(~np.isfinite(made))[0])
        raise DataError(
            f"line {line + at}: {what} is {values[at]!r}, not a number", file=path, remedy="correct the line"
        )
    return made


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
