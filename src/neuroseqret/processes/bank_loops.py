"""Compiled loops of the convolution bank: channels of events, outputs of kernels, pooling.

Events are flat arrays; sequence r has the events from `offsets[r]` to `offsets[r + 1]`. The channels of a sequence are
the rows of a flat array, one after the other, so that a tap is one index. Outputs are computed `WIDTH` at a time, and
pooled before they leave the registers.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from neuroseqret.processes import lanes
from neuroseqret.processes.lanes import WIDTH

GAP, OWN_GAP, FIRST_VALUE = 0, 1, 2  # channels; the codes of marks come after the values
_APART = 1e-3  # outputs that differ by less are equal up to rounding
_NOTHING = np.float32(-1e30)  # an output that is not there
_ONE = np.uint64(1)
_ZERO = np.float32(0.0)
#: A block with no more outputs than this is added to the sum of the blocks before it. The order of additions decides
#: how sums are rounded; this is the order in which the models were measured.
_HALF = WIDTH // 2
#: Bit i of number b is bit b of i.
_PLACES = tuple(np.uint64(sum(1 << i for i in range(WIDTH) if i >> b & 1)) for b in range(6))


@numba.njit(cache=True, nogil=True)
def _fill(x: Any, width: int, gaps: Any, values: Any, marks: Any, known: int, codes: Any) -> None:  # pragma: no cover
    """Fill in the channels of one sequence; a missing gap counts as the mean gap of the sequence."""
    n = len(gaps)
    total, number = np.float32(0.0), 0
    for i in range(n):
        if not np.isnan(gaps[i]):
            total += gaps[i]
            number += 1
    mean = total / np.float32(max(number, 1))
    for i in range(n):
        gap = mean if np.isnan(gaps[i]) else gaps[i]
        x[GAP * width + i] = gap
        x[OWN_GAP * width + i] = gap - mean
    for v in range(values.shape[0]):
        for i in range(n):
            x[(FIRST_VALUE + v) * width + i] = values[v, i]
    classes, first_code = codes.shape[1] - 1, FIRST_VALUE + values.shape[0]
    for i in range(n):
        kind = marks[i] % classes if 0 <= marks[i] < known else classes
        for c in range(codes.shape[0]):
            x[(first_code + c) * width + i] = codes[c, kind]


@numba.njit(cache=True, nogil=True)
def _starts(begin: Any, channel: Any, offset: Any, width: int) -> Any:  # pragma: no cover
    """Return where in the channels of a sequence every tap begins to read."""
    found = np.empty(begin[-1], np.int64)
    for t in range(len(found)):
        found[t] = channel[t] * width + offset[t]
    return found


@numba.njit(cache=True, nogil=True)
def _block(x: Any, i: int, m: int, first: int, last: int, start: Any, tap: Any, bias: Any) -> Any:  # pragma: no cover
    """Return the outputs from i of the kernel with the taps `first` to `last`; from output m on `_NOTHING`."""
    y = lanes.lanes(-bias)
    for t in range(first, last):
        y = lanes.add_scaled(y, x, start[t] + i, tap[t])
    return y if m - i >= WIDTH else lanes.first(y, m - i, _NOTHING)


@numba.njit(cache=True, nogil=True)
def _sum_of_places(bits: Any) -> Any:  # pragma: no cover
    """Return the sum of the places of the bits that are 1."""
    found = lanes.popcount(bits & _PLACES[0])
    found += lanes.popcount(bits & _PLACES[1]) << np.uint64(1)
    found += lanes.popcount(bits & _PLACES[2]) << np.uint64(2)
    found += lanes.popcount(bits & _PLACES[3]) << np.uint64(3)
    found += lanes.popcount(bits & _PLACES[4]) << np.uint64(4)
    return found + (lanes.popcount(bits & _PLACES[5]) << np.uint64(5))


@numba.njit(cache=True, nogil=True)
def _run_within(bits: Any) -> Any:  # pragma: no cover
    """Return the length of the longest run of bits that are 1, at most 63; without branches.

    A run of n bits is put together of runs of 32, 16, 8, ... bits; in these words those bits are 1 where one begins.
    """
    two = bits & (bits >> np.uint64(1))
    four = two & (two >> np.uint64(2))
    eight = four & (four >> np.uint64(4))
    sixteen = eight & (eight >> np.uint64(8))
    begins, length = sixteen & (sixteen >> np.uint64(16)), np.uint64(32)
    if begins == 0:
        begins, length = ~np.uint64(0), np.uint64(0)
    for size, runs in ((16, sixteen), (8, eight), (4, four), (2, two), (1, bits)):
        longer = begins & (runs >> length)
        begins = longer if longer != 0 else begins
        length += np.uint64(size) if longer != 0 else np.uint64(0)
    return length


@numba.njit(cache=True, nogil=True)
def longest_run_place(out: Any) -> Any:  # pragma: no cover
    """Return the begin and end of the first longest run of positive outputs; (0, 0) if none is positive."""
    begin, best, run = 0, 0, 0
    for i in range(len(out)):
        run = run + 1 if out[i] > 0 else 0
        if run > best:
            begin, best = i + 1 - run, run
    return begin, begin + best


@numba.njit(cache=True, nogil=True)
def pooled(
    offsets: Any, gaps: Any, values: Any, marks: Any, known: int,
    codes: Any, begin: Any, channel: Any, offset: Any, tap: Any, span: Any, bias: Any, found: Any,
) -> None:  # fmt: skip  # pragma: no cover
    """Fill `found` (sequences, 5 * kernels) with the pooled outputs; NaN for kernels longer than the sequence."""
    kernels, width = len(span), 1
    for r in range(len(offsets) - 1):
        width = max(width, offsets[r + 1] - offsets[r])
    x, start = _channels(width, values, codes), _starts(begin, channel, offset, width)
    bits = np.empty((width // WIDTH + 1, kernels), np.uint64)  # which outputs are positive, by block of outputs
    total, most = np.empty(kernels, np.float32), np.empty(kernels, np.float32)
    for r in range(len(offsets) - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        stop = first + n
        _fill(x, width, gaps[first:stop], values[:, first:stop], marks[first:stop], known, codes)
        blocks = max((n + WIDTH - 1) // WIDTH, 1)
        for k in range(kernels):
            m = n - span[k] + 1
            above, highest = lanes.lanes(_ZERO), lanes.lanes(_NOTHING)
            for block in range(blocks):
                left = m - block * WIDTH
                if left > 0:
                    y = _block(x, block * WIDTH, m, begin[k], begin[k + 1], start, tap, bias[k])
                    if left <= _HALF:
                        above = lanes.first(lanes.lanes(lanes.total_of(above)), 1, _ZERO)
                    above, highest = lanes.add_positive(above, y), lanes.larger(highest, y)
                    bits[block, k] = lanes.positive(y)
                else:
                    bits[block, k] = 0
            total[k], most[k] = lanes.total_of(above), lanes.largest_of(highest)
        _pool(n, span, bits[:blocks], total, most, found[r])


@numba.njit(cache=True, nogil=True, error_model="numpy")
def _pool(n: int, span: Any, bits: Any, total: Any, most: Any, found: Any) -> None:  # pragma: no cover
    """Fill `found` (5 * kernels,) with what follows from the signs of the outputs, their positive sum and maximum."""
    kernels = len(span)
    number, places = np.zeros(kernels, np.uint64), np.zeros(kernels, np.uint64)
    begun, longest = np.zeros(kernels, np.uint64), np.zeros(kernels, np.uint64)
    for block in range(len(bits)):
        before = np.uint64(block * WIDTH)
        for k in range(kernels):
            word = bits[block, k]
            positive = lanes.popcount(word)
            number[k] += positive
            places[k] += _sum_of_places(word) + positive * before
            # A run may have begun in the blocks before this one, and may go on in the next.
            at_begin = lanes.popcount(word & ~(word + _ONE))
            at_end = lanes.leading_zeros(~word)
            longest[k] = max(longest[k], max(_run_within(word), begun[k] + at_begin))
            begun[k] = begun[k] + at_end if at_end == WIDTH else at_end
    nothing = np.float32(np.nan)
    for k in range(kernels):
        m = n - span[k] + 1
        outputs, positive = np.float32(m), np.float32(number[k])
        there = m > 0
        place = np.float32(places[k]) / (max(positive, np.float32(1.0)) * outputs)
        found[k] = (place if number[k] > 0 else np.float32(0.5)) if there else nothing
        found[kernels + k] = positive / outputs if there else nothing
        found[2 * kernels + k] = most[k] if there else nothing
        found[3 * kernels + k] = total[k] / max(positive, np.float32(1.0)) if there else nothing
        found[4 * kernels + k] = np.float32(longest[k]) / outputs if there else nothing


@numba.njit(cache=True, nogil=True)
def _channels(width: int, values: Any, codes: Any) -> Any:  # pragma: no cover
    """Return room for the channels of a sequence, and for what the last block reads beyond them."""
    return np.zeros((FIRST_VALUE + values.shape[0] + codes.shape[0]) * width + WIDTH, np.float32)


@numba.njit(cache=True, nogil=True)
def outputs(
    offsets: Any, gaps: Any, values: Any, marks: Any, known: int,
    codes: Any, begin: Any, channel: Any, offset: Any, tap: Any, span: Any, bias: Any, found: Any,
) -> None:  # fmt: skip  # pragma: no cover
    """Fill `found` (kernels, events) with the outputs of every kernel on one sequence."""
    n = offsets[1] - offsets[0]
    x, start, out = _channels(n, values, codes), _starts(begin, channel, offset, n), np.empty(n + WIDTH, np.float32)
    _fill(x, n, gaps, values, marks, known, codes)
    for k in range(len(span)):
        m = n - span[k] + 1
        if m > 0:
            _convolve(x, m, begin[k], begin[k + 1], start, tap, bias[k], out)
            found[k, :m] = out[:m]


@numba.njit(cache=True, nogil=True)
def _convolve(
    x: Any, m: int, first: int, last: int, start: Any, tap: Any, bias: Any, out: Any
) -> None:  # pragma: no cover
    """Set out[:m] to the outputs of one kernel; `out` has room for `WIDTH` more."""
    for i in range(0, m, WIDTH):
        lanes.store(_block(x, i, m, first, last, start, tap, bias), out, i)


@numba.njit(cache=True, nogil=True)
def _between(ordered: Any, quantile: float) -> Any:  # pragma: no cover
    """Return a quantile half-way between two values that occur.

    Marks and ticking clocks give the same output again and again; a bias at such a value would leave its sign to
    rounding.
    """
    low = min(int(quantile * len(ordered)), len(ordered) - 1)
    high = low
    while high < len(ordered) - 1 and ordered[high] - ordered[low] < _APART:
        high += 1
    if ordered[high] - ordered[low] < _APART:  # all values above are equal: go down instead
        high = low
        while low > 0 and ordered[high] - ordered[low] < _APART:
            low -= 1
    return (ordered[low] + ordered[high]) / np.float32(2.0)


@numba.njit(cache=True, nogil=True)
def quantiles(
    offsets: Any, gaps: Any, values: Any, marks: Any, known: int,
    codes: Any, begin: Any, channel: Any, offset: Any, tap: Any, span: Any, quantile: Any, bias: Any,
) -> None:  # fmt: skip  # pragma: no cover
    """Fill `bias` with the quantile of the outputs of each kernel over all given sequences; 0 if it has none."""
    sequences, channels = len(offsets) - 1, FIRST_VALUE + values.shape[0] + codes.shape[0]
    places = channels * offsets + WIDTH * np.arange(len(offsets))  # sequence r has its channels from places[r]
    x, start = np.zeros(places[-1], np.float32), np.empty((sequences, begin[-1]), np.int64)
    longest = np.int64(0)
    for r in range(sequences):
        first, stop = offsets[r], offsets[r + 1]
        of_row, n = x[places[r] :], stop - first
        _fill(of_row, n, gaps[first:stop], values[:, first:stop], marks[first:stop], known, codes)
        start[r] = _starts(begin, channel, offset, n)
        longest = max(longest, n)
    out, kept = np.empty(longest + WIDTH, np.float32), np.empty(offsets[-1], np.float32)
    for k in range(len(span)):
        number = 0
        for r in range(sequences):
            m = offsets[r + 1] - offsets[r] - span[k] + 1
            if m > 0:
                _convolve(x[places[r] :], m, begin[k], begin[k + 1], start[r], tap, np.float32(0.0), out)
                kept[number : number + m] = out[:m]
                number += m
        if number:
            bias[k] = _between(np.sort(kept[:number]), quantile[k])


@numba.njit(cache=True, nogil=True)
def standardise(found: Any, mean: Any, weight: Any, far: Any) -> None:  # pragma: no cover
    """Centre, scale and clip the statistics in place; NaN becomes 0."""
    for r in range(found.shape[0]):
        for c in range(found.shape[1]):
            value = (found[r, c] - mean[c]) * weight[c]
            found[r, c] = np.float32(0.0) if np.isnan(value) else min(max(value, -far), far)
