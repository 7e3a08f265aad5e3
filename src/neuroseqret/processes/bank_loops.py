"""Compiled loops of the convolution bank: channels of events, outputs of kernels, pooling.

Events are flat arrays; sequence r has the events from `offsets[r]` to `offsets[r + 1]`. The channels of a sequence are
the rows of a flat array, one after the other, so that a tap is one index and the innermost loops are vectorised.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

GAP, OWN_GAP, FIRST_VALUE = 0, 1, 2  # channels; the codes of marks come after the values
_APART = 1e-3  # outputs that differ by less are equal up to rounding
_LANES = 32  # numbers that a vectorised loop takes at once
_NOTHING = np.float32(-1e30)  # an output that is not there
_SIGN, _OTHERS = np.int32(31), np.int32(0x7FFFFFFF)  # the place of the sign bit, and all bits but the sign
_FAST = {"contract", "reassoc", "nsz", "nnan"}


@numba.njit(cache=True, nogil=True)
def _whole(number: int) -> int:  # pragma: no cover
    """Return the number rounded up to a multiple of `_LANES`."""
    return (number + _LANES - 1) // _LANES * _LANES


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


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _convolve(
    x: Any, width: int, m: int, first: int, last: int, channel: Any, offset: Any, tap: Any, bias: Any, out: Any
) -> None:  # pragma: no cover
    """Compute the outputs 0 to m of the kernel with the taps `first` to `last`, then `_NOTHING`.

    Compiled loops are fast over multiples of `_LANES` and slow over what is left, so nothing is left.
    """
    whole = _whole(m)
    for i in range(whole):
        out[i] = -bias
    for t in range(first, last):
        begin, weight = channel[t] * width + offset[t], tap[t]
        row = x[begin : begin + whole]  # an index that may be negative would keep the loop from being vectorised
        for i in range(whole):
            out[i] += weight * row[i]
    for i in range(m, whole):
        out[i] = _NOTHING


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _pool(out: Any, m: int, places: Any) -> Any:  # pragma: no cover
    """Return the number of positive outputs, their sum, the largest output, and the sum of the positive positions."""
    zero, one, whole = np.float32(0.0), np.float32(1.0), _whole(m)
    positive, total, place = zero, zero, zero
    for i in range(whole):
        value = out[i]
        positive += one if value > zero else zero
        place += places[i] if value > zero else zero
        total += value if value > zero else zero
    # A maximum of floats is not vectorised, one of integers is. With the other bits of negative numbers flipped, the
    # bits of floats have the order of the floats.
    bits, highest = out.view(np.int32), np.int32(-(2**31))
    for i in range(whole):
        highest = max(highest, bits[i] ^ ((bits[i] >> _SIGN) & _OTHERS))
    bits[whole] = highest ^ ((highest >> _SIGN) & _OTHERS)
    most = out[whole]
    return positive, total, most, place


@numba.njit(cache=True, nogil=True)
def _longest_run(out: Any, m: int) -> Any:  # pragma: no cover
    """Return the length of the longest run of positive outputs; without branches that the processor cannot predict."""
    run, best = np.int32(0), np.int32(0)
    for i in range(m):
        run = (run + np.int32(1)) & -np.int32(out[i] > 0)
        best = max(best, run)
    return best


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
    width = _whole(width)
    x = np.zeros((FIRST_VALUE + values.shape[0] + codes.shape[0]) * width + _LANES, np.float32)
    out, places = np.empty(width + 1, np.float32), np.arange(width).astype(np.float32)  # out has room for the maximum
    for r in range(len(offsets) - 1):
        first, stop = offsets[r], offsets[r + 1]
        _fill(x, width, gaps[first:stop], values[:, first:stop], marks[first:stop], known, codes)
        for k in range(kernels):
            m = stop - first - span[k] + 1
            if m <= 0:
                for pooling in range(found.shape[1] // kernels):
                    found[r, pooling * kernels + k] = np.nan
                continue
            _convolve(x, width, m, begin[k], begin[k + 1], channel, offset, tap, bias[k], out)
            positive, total, most, place = _pool(out, m, places)
            found[r, k] = place / (positive * np.float32(m)) if positive > 0 else np.float32(0.5)
            found[r, kernels + k] = positive / np.float32(m)
            found[r, 2 * kernels + k] = most
            found[r, 3 * kernels + k] = total / max(positive, np.float32(1.0))
            found[r, 4 * kernels + k] = np.float32(_longest_run(out, m)) / np.float32(m)


@numba.njit(cache=True, nogil=True)
def outputs(
    offsets: Any, gaps: Any, values: Any, marks: Any, known: int,
    codes: Any, begin: Any, channel: Any, offset: Any, tap: Any, span: Any, bias: Any, found: Any,
) -> None:  # fmt: skip  # pragma: no cover
    """Fill `found` (kernels, events) with the outputs of every kernel on one sequence."""
    n = offsets[1] - offsets[0]
    width = _whole(n)
    x = np.zeros((FIRST_VALUE + values.shape[0] + codes.shape[0]) * width + _LANES, np.float32)
    out = np.empty(width, np.float32)
    _fill(x, width, gaps, values, marks, known, codes)
    for k in range(len(span)):
        m = n - span[k] + 1
        if m > 0:
            _convolve(x, width, m, begin[k], begin[k + 1], channel, offset, tap, bias[k], out)
            found[k, :m] = out[:m]


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
    channels, sequences = FIRST_VALUE + values.shape[0] + codes.shape[0], len(offsets) - 1
    widths = np.array([_whole(offsets[r + 1] - offsets[r]) for r in range(sequences)])
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(widths * channels)))
    x = np.zeros(places[-1] + _LANES, np.float32)
    for r in range(sequences):
        first, stop = offsets[r], offsets[r + 1]
        _fill(x[places[r] :], widths[r], gaps[first:stop], values[:, first:stop], marks[first:stop], known, codes)
    out, kept = np.empty(max(1, widths.max()), np.float32), np.empty(offsets[-1] - offsets[0], np.float32)
    for k in range(len(span)):
        number = 0
        for r in range(sequences):
            m = offsets[r + 1] - offsets[r] - span[k] + 1
            if m > 0:
                of_row = x[places[r] :]
                _convolve(of_row, widths[r], m, begin[k], begin[k + 1], channel, offset, tap, np.float32(0.0), out)
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
