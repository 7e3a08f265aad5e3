r"""UDTW: dynamic time warping as in the UCR suite, on standardised series and within a warping window.

(The suite looks for the best window of a long series; here two series are warped as a whole, end to end.)

The distance of two standardised series a (n values) and b (m values) is

.. math:: d(a, b)^2 = \min_{\text{path}} \sum_{(i, j) \in \text{path}} (a_i - b_j)^2 \Big/ \max(n, m)

over monotone paths from (1, 1) to (n, m) that stay within r places of the diagonal, where r is 5 % of the longer
series (the suite's default). If the lengths differ, the band spans both diagonals, the one from the beginning and the
one from the end: -r - max(0, n - m) <= j - i <= r + max(0, m - n). A path has at least max(n, m) steps; dividing by
this makes candidates of different lengths comparable and changes no ranking of candidates of the same length.

Rakthanmanon et al., "Searching and mining trillions of time series subsequences under dynamic time warping", KDD 2012.
"""

from __future__ import annotations

from typing import ClassVar

import numba
import numpy as np

from neuroseqret.baselines.series import Series, SeriesBaseline, inter_event_times, standardise
from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError


class UDTWSettings(BaselineSettings):
    """`window`: half the band's width as a share of the longer series; 1 leaves the warping free."""

    window: float = 0.05


class UDTW(SeriesBaseline[Series]):
    """Ranks by dynamic time warping within a band, on the standardised series of inter-event times.

    `window`: half the band's width as a share of the longer series; 1 leaves the warping free.
    """

    name: ClassVar[str] = "udtw"
    settings: UDTWSettings

    def __init__(self, window: float = 0.05) -> None:
        if not 0 <= window <= 1:
            raise UserError(f"the warping window is a share of the length, from 0 to 1, not {window}")
        super().__init__(UDTWSettings(window=window))

    def prepare(self, sequences: EventSequences) -> Series:
        return standardise(inter_event_times(sequences))

    def compare(self, queries: Series, candidates: Series) -> FloatArray:
        window = self.settings.window
        return -_all_distances(queries.values, queries.offsets, candidates.values, candidates.offsets, window)


@numba.njit(cache=True)
def _distance(a: FloatArray, b: FloatArray, window: float, before: FloatArray, now: FloatArray) -> float:
    """DTW distance; `before` and `now` have room for len(b) + 1 values each."""
    n, m = len(a), len(b)
    longest = max(n, m)
    r = int(window * longest)
    left, right = r + max(0, n - m), r + max(0, m - n)
    before[: m + 1] = np.inf
    now[: m + 1] = np.inf
    before[0] = 0.0
    for i in range(n):
        begin, stop = max(0, i - left), min(m, i + right + 1)
        now[begin] = np.inf
        beside = np.inf
        for j in range(begin, stop):
            beside = (a[i] - b[j]) ** 2 + min(before[j], before[j + 1], beside)
            now[j + 1] = beside
        if stop < m:
            now[stop + 1] = np.inf  # the next row reads one place beyond the band of this one
        before, now = now, before
    return np.sqrt(before[m] / longest)


@numba.njit(cache=True)
def _all_distances(q: FloatArray, q_offsets: IntArray, c: FloatArray, c_offsets: IntArray, window: float) -> FloatArray:
    """(queries, candidates)."""
    found = np.empty((len(q_offsets) - 1, len(c_offsets) - 1))
    longest = 0
    for j in range(found.shape[1]):
        longest = max(longest, c_offsets[j + 1] - c_offsets[j])
    before, now = np.empty(longest + 1), np.empty(longest + 1)
    for i in range(found.shape[0]):
        query = q[q_offsets[i] : q_offsets[i + 1]]
        for j in range(found.shape[1]):
            found[i, j] = _distance(query, c[c_offsets[j] : c_offsets[j + 1]], window, before, now)
    return found
