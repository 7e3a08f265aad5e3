"""What tables count of an event: its gap on the scale of the corpus, classes of gaps, its part of the window."""

from __future__ import annotations

import numpy as np

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes.time_scale import TimeScale, gaps_of

PARTS_OF_WINDOW = 10


def log_gaps(sequences: EventSequences, scale: TimeScale) -> FloatArray:
    """Return the standardised log gaps of all events, NaN if there is none: (events,)."""
    gaps = gaps_of(sequences)
    gaps += scale.eps
    with np.errstate(divide="ignore"):  # eps may be 0; the log of a tie is then clipped below
        np.log(gaps, out=gaps)
    gaps -= scale.mean
    gaps /= scale.sd
    return np.clip(gaps, -6.0, 6.0, out=gaps)


def part_of_window(sequences: EventSequences) -> IntArray:
    """Return which of the `PARTS_OF_WINDOW` equal parts of its observation window each event falls in: (events,)."""
    starts, ends = sequences.observed()
    rows = np.repeat(np.arange(len(sequences)), sequences.lengths)
    span = np.maximum(ends - starts, np.finfo(np.float64).tiny)
    part: IntArray = (np.clip((sequences.times - starts[rows]) / span[rows], 0, 1) * PARTS_OF_WINDOW).astype(np.int64)
    return np.minimum(part, PARTS_OF_WINDOW - 1)


def quantiles(values: FloatArray, number: int) -> FloatArray:
    """Return the edges between `number` classes of about equal size; fewer edges if values are tied.

    An edge lies half-way between two values that occur, never on one. In some data most gaps are equal up to rounding,
    because clocks tick; an edge on such a value would split equal gaps by chance.
    """
    kinds, counts = np.unique(np.round(values, 6), return_counts=True)
    if len(kinds) < 2:
        return np.zeros(1)
    share = np.cumsum(counts) / len(values)
    below = np.searchsorted(share, np.arange(1, number) / number - 1e-9)
    below = np.unique(np.minimum(below, len(kinds) - 2))
    edges: FloatArray = (kinds[below] + kinds[below + 1]) / 2
    return edges
