"""Values as other tools write them (datetimes, wide integers, text marks) to float64 times and int32 marks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

#: Whole numbers in their usual spelling (so that no text is lost in them), and numbers in any.
WHOLE_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"
#: Digits with a leading zero, or more of them than a float keeps, are a code and no number: a postcode, a card.
NUMBER_PATTERN = r"^([+-]?(0|[1-9][0-9]{0,14}|(0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]+)?|nan|-?inf)$"

#: Says where a value is: flat event index to (sequence id, position), for errors.
Locate = Callable[[int], tuple[object, int | None]]


def locator(lengths: npt.NDArray[np.int64], name: Callable[[int], object]) -> Locate:
    """Finds events by the lengths of the sequences; `name` says what the sequence of a row is called."""

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
    """The values that are there, converted, and `missing` in place of the others: data that is to be repaired."""
    known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    found = convert(values.drop_null(), lambda event: locate(int(known[event])))
    full = np.full(len(values), missing, found.dtype)
    full[known] = found
    return full


def first_null(values: pa.Array) -> int:
    return int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
