"""Finding and reading raw files, with errors that say what was expected where."""

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
#: Wraps an iteration over so many things, to show how far it is.
Progress = Callable[[Iterable[Any], int], Iterable[Any]]


def track(items: Collection[T], progress: Progress | None) -> Iterable[T]:
    """The items, with progress shown where it is wanted."""
    return items if progress is None else progress(items, len(items))


def folder(raw: Path) -> Path:
    """The folder itself if it is one, else a `DataError`."""
    if not raw.is_dir():
        raise DataError("no such folder", file=raw, remedy="give the folder that holds the raw files")
    return raw


def find(raw: Path, *patterns: str) -> list[Path]:
    """All files under the folder that match one of the patterns, sorted; hidden ones left out."""
    found = {path for pattern in patterns for path in folder(raw).rglob(pattern) if path.is_file()}
    return sorted(p for p in found if not any(part.startswith(".") for part in p.relative_to(raw).parts))


def nothing_found(raw: Path, expected: str) -> DataError:
    """The error for a folder that holds none of the files a set is made of."""
    return DataError("holds no raw files of this set", file=raw, remedy=f"expected {expected}")


def text(path: Path) -> str:
    """The text of a file, UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"not a text file ({error.reason} at byte {error.start})", file=path) from error
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", file=path) from error


def json_file(path: Path) -> Any:
    """The content of a JSON file."""
    try:
        return json.loads(text(path))
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON ({error.msg} at line {error.lineno})", file=path, remedy="download it again"
        ) from error
    except RecursionError as error:
        raise DataError("not JSON (nested too deeply)", file=path, remedy="download it again") from error


def json_object(path: Path) -> dict[str, Any]:
    """The content of a JSON file that must be an object."""
    content = json_file(path)
    if not isinstance(content, dict):
        raise DataError("not a JSON object", file=path, remedy="download it again")
    return content


def number_column(table: pa.Table, name: str, path: Path) -> FloatArray:
    """A column of numbers as float64; text and empty cells are errors."""
    column = table.column(name)
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(f"column {name!r} holds text, not numbers", file=path, remedy="download it again")
    if column.null_count:
        raise DataError(f"column {name!r} has {column.null_count} empty cells", file=path, remedy="download it again")
    return column.to_numpy().astype(np.float64)


def numbers(values: list[str], path: Path, line: int, what: str) -> FloatArray:
    """Finite numbers from text, or a `DataError` that names the first line (`line` is that of the first value)."""
    try:
        made = np.array(values, dtype=np.float64)
    except ValueError:
        made = np.array([_number(v) for v in values])
    if not np.isfinite(made).all():
        at = int(np.flatnonzero(~np.isfinite(made))[0])
        raise DataError(f"line {line + at}: {what} is {values[at]!r}, not a number", file=path)
    return made


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return float("nan")
