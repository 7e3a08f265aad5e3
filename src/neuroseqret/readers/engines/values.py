"""What the conversion of times, marks and other columns shares: types, number patterns, places for errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Whole numbers in their usual spelling, so that converting them to numbers and back changes nothing.
WHOLE_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"
#: Numbers in any spelling. Digits with a leading zero, or more digits than a float64 keeps, are a code (a postcode).
NUMBER_PATTERN = r"^([+-]?(0|[1-9][0-9]{0,14}|(0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]+)?|nan|-?inf)$"

#: Says where a value is, for errors: flat index of the event to (sequence id, position).
Locate = Callable[[int], tuple[object, int | None]]


def locator(lengths: npt.NDArray[np.int64], name: Callable[[int], object]) -> Locate:
    """Return a function that finds events by the lengths of the sequences; `name` gives the id of a row."""

    def locate(event: int) -> tuple[object, int]:
        ends = np.cumsum(lengths)
        row = int(np.searchsorted(ends, event, side="right"))
        return name(row), event - int(ends[row] - lengths[row])

    return locate


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def around_nulls(
    values: pa.Array, locate: Locate, missing: float, convert: Callable[[pa.Array, Locate], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """Convert the values that are not null, and put `missing` in place of the nulls, for data to be repaired."""
    known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    found = convert(values.drop_null(), lambda event: locate(int(known[event])))
    full = np.full(len(values), missing, found.dtype)
    full[known] = found
    return full


def first_null(values: pa.Array) -> int:
    return int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
