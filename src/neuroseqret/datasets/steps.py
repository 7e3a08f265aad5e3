"""Send-on-delta sampling: a regular signal becomes events where its level has moved.

Let y be the level at the last event. A reading x is the next event if |x - y| > max(absolute, relative * |y|). The
first reading sets the level and is not an event. One compiled pass.
"""

from __future__ import annotations

import numba
import numpy as np

from neuroseqret.data.sequences import FloatArray, IntArray


@numba.njit(cache=True)
def _pass(values, absolute, relative):  # type: ignore[no-untyped-def]
    rows = np.empty(len(values), np.int64)
    levels = np.empty(len(values), np.float64)
    count = 0
    if len(values):
        level = values[0]
        for row in range(1, len(values)):
            moved = abs(values[row] - level)
            if moved > max(absolute, relative * abs(level)):
                rows[count], levels[count] = row, level
                count += 1
                level = values[row]
    return rows[:count].copy(), levels[:count].copy()


def steps(values: FloatArray, absolute: float, relative: float = 0.0) -> tuple[IntArray, FloatArray]:
    """Return the rows of the readings that are events, and the level before each."""
    found: tuple[IntArray, FloatArray] = _pass(np.ascontiguousarray(values, np.float64), absolute, relative)
    return found


def relative_change(new: FloatArray, old: FloatArray) -> FloatArray:
    """Return (new - old) / max(|new|, |old|), in [-2, 2]; 0 where both are 0."""
    top = np.maximum(np.abs(new), np.abs(old))
    return np.divide(new - old, top, out=np.zeros_like(top), where=top > 0)
