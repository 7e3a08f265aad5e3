r"""UDTW, dynamic time warping with the UCR suite's means: standardised series, a warping window, pruning lower bounds.

(The suite looks for the best window of a long series; here two series are warped as a whole, end to end.)

Of two standardised series a (n values) and b (m values) the distance is

.. math:: d(a, b)^2 = \min_{\text{path}} \sum_{(i, j) \in \text{path}} (a_i - b_j)^2 \Big/ \max(n, m)

over monotone paths from (1, 1) to (n, m) that stay within r places of the diagonal, r = 5 % of the longer series (the
suite's default). Where lengths differ the band spans both diagonals, the one from the beginning and the one from the
end: -r - max(0, n - m) <= j - i <= r + max(0, m - n). A path has at least max(n, m) steps; dividing by it lets
candidates of unequal lengths be compared. For one length it changes no ranking.

`score` gives every distance, exactly. `nearest` gives the k nearest, the same ones, and leaves out most of the work:
candidates come in order of LB_Keogh, the walk ends at the first whose bound is above the k-th distance, and a
warping is abandoned as soon as a whole row of it is above.

Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012.
"""

from __future__ import annotations

import numba
import numpy as np

from neuroseqret.baselines.series import Series, SeriesBaseline, inter_event_times, standardise
from neuroseqret.data.sequences import EventSequence, EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError
from neuroseqret.models.base import Scores

#: Bounds and distances add the same squares in another order; a bound prunes only if it is clearly above.
ROUNDING = 1 + 1e-9


class UDTW(SeriesBaseline[Series]):
    """Ranks by dynamic time warping within a band, on the standardised series of inter-event times.

    `window`: half the band's width as a share of the longer series; 1 leaves the warping free.
    """

    name = "udtw"

    def __init__(self, window: float = 0.05) -> None:
        super().__init__()
        if not 0 <= window <= 1:
            raise UserError(f"the warping window is a share of the length, from 0 to 1, not {window}")
        self.window = window

    def settings(self) -> dict[str, float]:
        return {"window": self.window}

    def prepare(self, sequences: EventSequences) -> Series:
        return standardise(inter_event_times(sequences))

    def compare(self, queries: Series, candidates: Series) -> FloatArray:
        return -_all_distances(queries.values, queries.offsets, candidates.values, candidates.offsets, self.window)

    def nearest(self, query: EventSequence, candidates: EventSequences, k: int = 10) -> tuple[IntArray, Scores]:
        """Rows and scores of the k best candidates, best first, equal scores in order of rows: `score`'s top k."""
        one, many = self.prepare(EventSequences.of(query)), self.prepared(candidates)
        k = min(k, len(many))
        if k < 1:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        by_length = np.argsort(many.lengths, kind="stable")
        bounds = lower_bounds(one.values, many.values, many.offsets, by_length, self.window)
        order = np.argsort(bounds, kind="stable")
        rows, distances, _ = _walk(one.values, many.values, many.offsets, order, bounds, k, self.window)
        return rows, (-distances).astype(np.float32)


@numba.njit(cache=True)
def _distance(a: FloatArray, b: FloatArray, window: float, limit: float, before: FloatArray, now: FloatArray) -> float:
    """DTW distance; infinity once it is sure to be above `limit`. `before` and `now` hold len(b) + 1 values."""
    n, m = len(a), len(b)
    longest = max(n, m)
    r = int(window * longest)
    left, right = r + max(0, n - m), r + max(0, m - n)
    most = limit * limit * longest
    before[: m + 1] = np.inf
    now[: m + 1] = np.inf
    before[0] = 0.0
    for i in range(n):
        begin, stop = max(0, i - left), min(m, i + right + 1)
        now[begin] = np.inf
        least = np.inf
        beside = np.inf
        for j in range(begin, stop):
            beside = (a[i] - b[j]) ** 2 + min(before[j], before[j + 1], beside)
            now[j + 1] = beside
            least = min(least, beside)
        if least > most:
            return np.inf
        if stop < m:
            now[stop + 1] = np.inf  # the next row looks one place beyond this one's band
        before, now = now, before
    return np.sqrt(before[m] / longest)


@numba.njit(cache=True)
def _all_distances(q: FloatArray, q_offsets: IntArray, c: FloatArray, c_offsets: IntArray, window: float) -> FloatArray:
    """(queries, candidates)."""
    found = np.empty((len(q_offsets) - 1, len(c_offsets) - 1))
    room = _longest(c_offsets) + 1
    before, now = np.empty(room), np.empty(room)
    for i in range(found.shape[0]):
        query = q[q_offsets[i] : q_offsets[i + 1]]
        for j in range(found.shape[1]):
            found[i, j] = _distance(query, c[c_offsets[j] : c_offsets[j + 1]], window, np.inf, before, now)
    return found


@numba.njit(cache=True)
def lower_bounds(
    query: FloatArray, c: FloatArray, c_offsets: IntArray, by_length: IntArray, window: float
) -> FloatArray:
    """LB_Keogh of every candidate: how far it leaves the query's envelope.

    Candidates are visited in order of length, as the band, and so the envelope, depends on nothing else of them.
    """
    bounds = np.empty(len(c_offsets) - 1)
    room = _longest(c_offsets)
    low, high, queue = np.empty(room), np.empty(room), np.empty(len(query), np.int64)
    length = -1
    for row in by_length:
        candidate = c[c_offsets[row] : c_offsets[row + 1]]
        if len(candidate) != length:
            length = len(candidate)
            _envelope(query, length, window, queue, low, high)
        bounds[row] = _outside(candidate, low, high, len(query))
    return bounds


@numba.njit(cache=True)
def _outside(values: FloatArray, low: FloatArray, high: FloatArray, other: int) -> float:
    """Distance of a series from an envelope: each of its values is matched at least once, and inside the band."""
    total = 0.0
    for j in range(len(values)):
        total += max(values[j] - high[j], 0.0) ** 2 + max(low[j] - values[j], 0.0) ** 2
    return np.sqrt(total / max(len(values), other))


@numba.njit(cache=True)
def _envelope(
    values: FloatArray, length: int, window: float, queue: IntArray, low: FloatArray, high: FloatArray
) -> None:
    """Least and largest of the values that the band allows at each place of a series of the given length."""
    n = len(values)
    r = int(window * max(n, length))
    left, right = r + max(0, length - n), r + max(0, n - length)
    _extremes(values, left, right, 1.0, queue, high[:length])
    _extremes(values, left, right, -1.0, queue, low[:length])


@numba.njit(cache=True)
def _extremes(values: FloatArray, left: int, right: int, sign: float, queue: IntArray, into: FloatArray) -> None:
    """`into[j]` = the largest (sign 1) or least (sign -1) of values[j - left : j + right + 1].

    The queue holds the values that may still become the extreme, best first; each enters and leaves it once.
    """
    head, tail, entered = 0, 0, 0
    for j in range(len(into)):
        while entered < len(values) and entered <= j + right:
            while tail > head and sign * values[queue[tail - 1]] <= sign * values[entered]:
                tail -= 1
            queue[tail] = entered
            tail += 1
            entered += 1
        while queue[head] < j - left:
            head += 1
        into[j] = values[queue[head]]


@numba.njit(cache=True)
def _walk(
    query: FloatArray, c: FloatArray, c_offsets: IntArray, order: IntArray, bounds: FloatArray, k: int, window: float
) -> tuple[IntArray, FloatArray, int]:
    """The k nearest in order of (distance, row), and how many distances were begun.

    The bound from the other side, the query against each candidate's envelope, prunes more and costs more than
    the abandoned warpings that it saves (measured), so it is not taken.
    """
    room = _longest(c_offsets) + 1
    before, now = np.empty(room), np.empty(room)
    rows, distances = np.full(k, -1, np.int64), np.full(k, np.inf)
    begun = 0
    for row in order:
        worst = distances[k - 1] * ROUNDING
        if bounds[row] > worst:
            break
        candidate = c[c_offsets[row] : c_offsets[row + 1]]
        begun += 1
        distance = _distance(query, candidate, window, worst, before, now)
        if distance > distances[k - 1] or (distance == distances[k - 1] and row > rows[k - 1] >= 0):
            continue
        place = k - 1
        while place > 0 and (
            distances[place - 1] > distance or (distances[place - 1] == distance and rows[place - 1] > row)
        ):
            rows[place], distances[place] = rows[place - 1], distances[place - 1]
            place -= 1
        rows[place], distances[place] = row, distance
    return rows, distances, begun


@numba.njit(cache=True)
def _longest(offsets: IntArray) -> int:
    longest = 0
    for row in range(len(offsets) - 1):
        longest = max(longest, offsets[row + 1] - offsets[row])
    return longest
