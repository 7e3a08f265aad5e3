"""Compiled loops of the Markov-renewal process: the cell of each event in every table, counts and moments.

Events are flat arrays; sequence r has the events from `offsets[r]` to `offsets[r + 1]`. A missing gap is NaN, a missing
cell is -1.
"""

from __future__ import annotations

import numba
import numpy as np

from neuroseqret.data.sequences import FloatArray, IntArray

MARK_TABLES, LAGS = 3, 6
#: What the counts of a table are divided by: the number of events, of neighbouring pairs, or of gaps.
EVENTS, STEPS, GAPS = range(3)
MOMENTS = 8 + LAGS


@numba.njit(cache=True, nogil=True)
def place(ordered: IntArray, value: float) -> int:  # pragma: no cover
    """Return how many of the ordered values are below `value`: bisection without unpredictable branches."""
    low, number = 0, len(ordered)
    while number > 0:
        half = (number + 1) // 2
        low += half * (ordered[low + half - 1] < value)
        number -= half
    return low


@numba.njit(cache=True, nogil=True)
def class_of(edges: FloatArray, value: float) -> int:  # pragma: no cover
    """Return the class of a value; with few edges, comparing with all of them is faster than bisection."""
    below = 0
    for edge in edges:
        below += edge < value
    return below


@numba.njit(cache=True, nogil=True)
def own_gaps(offsets: IntArray, gaps: FloatArray) -> tuple[FloatArray, FloatArray, IntArray]:  # pragma: no cover
    """Return the gaps minus the mean of their sequence, that mean (0 without gaps), and the number of gaps."""
    sequences = len(offsets) - 1
    own, mean, number = np.empty_like(gaps), np.zeros(sequences), np.zeros(sequences, np.int64)
    for r in range(sequences):
        total = 0.0
        for i in range(offsets[r], offsets[r + 1]):
            if not np.isnan(gaps[i]):
                total += gaps[i]
                number[r] += 1
        mean[r] = total / max(number[r], 1)
        for i in range(offsets[r], offsets[r + 1]):
            own[i] = gaps[i] - mean[r]
    return own, mean, number


@numba.njit(cache=True, nogil=True)
def mark_codes(
    offsets: IntArray, marks: IntArray, gaps: FloatArray, quarter: FloatArray, known: int
) -> IntArray:  # pragma: no cover
    """Return a code for the pair, triple and timed pair of known marks that end with each event: (3, events)."""
    codes = np.full((MARK_TABLES, len(marks)), -1, np.int64)
    for r in range(len(offsets) - 1):
        run = 0  # known marks in a row
        for i in range(offsets[r], offsets[r + 1]):
            run = run + 1 if marks[i] < known else 0
            if run < 2:
                continue
            pair = np.int64(marks[i - 1]) * known + marks[i]
            codes[0, i] = pair
            if run > 2:
                codes[1, i] = (np.int64(marks[i - 2]) * known + marks[i - 1]) * known + marks[i]
            if not np.isnan(gaps[i]):
                codes[2, i] = pair * (len(quarter) + 1) + class_of(quarter, gaps[i])
    return codes


@numba.njit(cache=True, nogil=True)
def kept_places(codes: IntArray, kinds: IntArray, places: IntArray, cells: IntArray) -> None:  # pragma: no cover
    """Fill `cells` with the position of each code among the sorted `kinds` that a table keeps; -1 if it is not kept.

    `places` holds the position of every code if there are few enough codes, otherwise it is empty.
    """
    for i in range(len(codes)):
        if codes[i] < 0:
            cells[i] = -1
        elif codes[i] < len(places):
            cells[i] = places[codes[i]]
        else:
            at = place(kinds, codes[i])
            cells[i] = at if at < len(kinds) and kinds[at] == codes[i] else -1


@numba.njit(cache=True, nogil=True)
def gap_cells(
    offsets: IntArray,
    marks: IntArray,
    gaps: FloatArray,
    own: FloatArray,
    fine: FloatArray,
    coarse: FloatArray,
    own_fine: FloatArray,
    own_coarse: FloatArray,
    quarter: FloatArray,
    known: int,
    cells: IntArray,  # (6, events), filled
) -> None:  # pragma: no cover
    """Fill the cells that end with each event: gap, own gap, mark and gap, two gaps, two own gaps, three gaps."""
    n_coarse, n_own, n_quarter = len(coarse) + 1, len(own_coarse) + 1, len(quarter) + 1
    cells[:] = -1
    for r in range(len(offsets) - 1):
        run = 0  # gaps in a row
        last_coarse = last_own = last_quarter = before_quarter = 0
        for i in range(offsets[r], offsets[r + 1]):
            if np.isnan(gaps[i]):
                run = 0
                continue
            run += 1
            of_coarse, of_quarter = class_of(coarse, gaps[i]), class_of(quarter, gaps[i])
            of_own = class_of(own_coarse, own[i])
            cells[0, i], cells[1, i] = class_of(fine, gaps[i]), class_of(own_fine, own[i])
            if marks[i] < known:
                cells[2, i] = marks[i] * n_coarse + of_coarse
            if run > 1:
                cells[3, i], cells[4, i] = last_coarse * n_coarse + of_coarse, last_own * n_own + of_own
            if run > 2:
                cells[5, i] = (before_quarter * n_quarter + last_quarter) * n_quarter + of_quarter
            before_quarter = last_quarter
            last_coarse, last_own, last_quarter = of_coarse, of_own, of_quarter


@numba.njit(cache=True, nogil=True)
def roots_of_shares(
    offsets: IntArray, cells: IntArray, begin: IntArray, totals: IntArray, gapped: IntArray, out: FloatArray
) -> None:  # pragma: no cover
    """Set out[r, begin[t] + c] to sqrt(count in cell c of table t / total) of sequence r.

    `totals[t]` is EVENTS, STEPS or GAPS: which total the table uses.
    """
    for r in range(len(offsets) - 1):
        number = offsets[r + 1] - offsets[r]
        for t in range(len(cells)):
            table = out[r, begin[t] : begin[t + 1]]
            for i in range(offsets[r], offsets[r + 1]):
                if cells[t, i] >= 0:
                    table[cells[t, i]] += 1
            whole = number if totals[t] == EVENTS else (number - 1 if totals[t] == STEPS else gapped[r])
            divisor = float(max(whole, 1))
            for c in range(len(table)):  # empty cells too: without a branch the compiler vectorises the loop
                table[c] = np.sqrt(table[c] / divisor)


@numba.njit(cache=True, nogil=True)
def means_per_mark(
    offsets: IntArray, marks: IntArray, gaps: FloatArray, own: FloatArray, known: int, out: FloatArray
) -> None:  # pragma: no cover
    """Fill out (sequences, 2 * known) with the mean gap before each mark, then the mean own gap; 0 for absent marks."""
    number = np.empty(known, np.int64)
    total, own_total = np.empty(known), np.empty(known)
    for r in range(len(offsets) - 1):
        number[:], total[:], own_total[:] = 0, 0.0, 0.0
        for i in range(offsets[r], offsets[r + 1]):
            if marks[i] < known and not np.isnan(gaps[i]):
                number[marks[i]] += 1
                total[marks[i]] += gaps[i]
                own_total[marks[i]] += own[i]
        for mark in range(known):
            out[r, mark] = total[mark] / max(number[mark], 1)
            out[r, known + mark] = own_total[mark] / max(number[mark], 1)


@numba.njit(cache=True, nogil=True)
def moments(
    offsets: IntArray,
    gaps: FloatArray,
    own: FloatArray,
    mean: FloatArray,
    gapped: IntArray,
    duration: FloatArray,
    out: FloatArray,
) -> None:  # pragma: no cover
    """Fill out (sequences, MOMENTS) with the moments of the log gaps, the log length and the log duration.

    The moments are mean, sd, log sd, skewness, lagged correlations and size of changes. A missing gap counts as an
    average one.
    """
    for r in range(len(offsets) - 1):
        begin, end = offsets[r], offsets[r + 1]
        number, length = max(gapped[r], 1), end - begin
        squares = cubes = change = changes = 0.0
        lagged = np.zeros(LAGS)
        for i in range(begin, end):
            if np.isnan(own[i]):
                continue
            squares += own[i] ** 2
            cubes += own[i] ** 3
            for lag in range(1, min(LAGS, i - begin) + 1):
                if not np.isnan(own[i - lag]):
                    lagged[lag - 1] += own[i] * own[i - lag]
            if i > begin and not np.isnan(gaps[i - 1]):
                change += abs(gaps[i] - gaps[i - 1])
                changes += (gaps[i] - gaps[i - 1]) ** 2
        variance = squares / number
        sd, steps = np.sqrt(variance) + 1e-3, max(length - 1, 1)
        out[r, 0], out[r, 1], out[r, 2], out[r, 3] = mean[r], sd, np.log(sd), cubes / number / sd**3
        out[r, 4], out[r, 5] = np.log(length), duration[r]
        for lag in range(1, LAGS + 1):
            out[r, 5 + lag] = lagged[lag - 1] / max(length - lag, 1) / max(variance, 1e-3)
        out[r, 6 + LAGS], out[r, 7 + LAGS] = change / steps, np.log(changes / steps + 1e-4)
        for column in range(MOMENTS):
            out[r, column] = min(max(out[r, column], -50.0), 50.0)
