"""The compiled loop of `gaps`: the median gap of every sequence."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def median_gaps(times: Any, offsets: Any, found: Any) -> None:  # pragma: no cover
    """Fill `found` with the median of the positive gaps of every sequence, NaN if it has none."""
    longest = 0
    for r in range(len(offsets) - 1):
        longest = max(longest, offsets[r + 1] - offsets[r])
    gaps = np.empty(longest)
    for r in range(len(offsets) - 1):
        number = 0
        for i in range(offsets[r] + 1, offsets[r + 1]):
            gaps[number] = times[i] - times[i - 1]
            number += gaps[number] > 0
        found[r] = _median(gaps, number) if number else np.nan


@numba.njit(cache=True, nogil=True)
def _median(values: Any, number: int) -> Any:  # pragma: no cover
    """Return the median of the first values, which change places: quickselect."""
    begin, end, middle = 0, number - 1, number // 2
    while begin < end:
        pivot, i, j = values[(begin + end) // 2], begin, end
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i, j = i + 1, j - 1
        if middle <= j:
            end = j
        elif middle >= i:
            begin = i
        else:
            break
    upper = values[middle]
    if number % 2:
        return upper
    lower = values[0]  # the largest of the values before
    for i in range(1, middle):
        lower = max(lower, values[i])
    return (lower + upper) / 2
