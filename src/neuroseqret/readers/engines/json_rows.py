"""Turn JSON objects into an Arrow table without rounding any whole number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from neuroseqret.readers.engines.times import LARGEST_EXACT
from neuroseqret.readers.limits import check_columns


def table_from_rows(rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Return the rows as a table with one column per key, in order of appearance."""
    kept = list(rows)
    keys = dict.fromkeys(key for row in kept for key in row)
    check_columns(len(keys), "different keys")
    return pa.table({key: _exact_array([row.get(key) for row in kept]) for key in keys})


def _exact_array(values: list[Any]) -> pa.Array:
    """Return the values as an array; if a whole number fits no number type of Arrow, all numbers become text."""
    try:
        return pa.array(values)
    except (OverflowError, pa.ArrowInvalid):
        if not any(map(_has_large, values)):
            raise
        return pa.array([_numbers_as_text(value) for value in values])


def _has_large(value: Any) -> bool:
    if isinstance(value, (list, dict)):
        return any(map(_has_large, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and abs(value) >= LARGEST_EXACT


def _numbers_as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _numbers_as_text(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_numbers_as_text(item) for item in value]
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
