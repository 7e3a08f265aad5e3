r"""MASS, Mueen's algorithm for similarity search: the best match of the shorter series inside the longer one.

The shorter series s (m values) slides over the longer one. At each place i the z-normalised Euclidean distance is

.. math:: d_i = \sqrt{2m (1 - \rho_i)}, \qquad \rho_i = \text{Pearson correlation of } s \text{ and the window at } i,

and the score of the pair is the largest correlation, :math:`\max_i \rho_i = 1 - \min_i d_i^2 / 2m`. If all candidates
are at least as long as the query, this gives the same ranking as the least distance; unlike the distance, a correlation
can also be compared between pairs with different m.

The algorithm computes the sliding products by FFT. This is faster for long series only, so for pairs of up to
`FFT_PAYS` products they are computed one by one, compiled and over all candidates in one call: 0.1 to 2 microseconds
per pair of event sequences. A call of `stumpy.mass`, which gives the same numbers, takes about a millisecond.

Constant windows follow stumpy: two of them have distance 0; a constant and a varying one have distance sqrt(m), which
is correlation 1/2. If m = 1 there is no shape to compare, and the score is 1/2.

Mueen et al., "The fastest similarity search algorithm for time series subsequences under Euclidean distance", 2017.
Law, "STUMPY: A powerful and scalable Python library for time series data mining", JOSS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numba
import numpy as np

from neuroseqret.baselines.series import Series, SeriesBaseline, inter_event_times, standardise
from neuroseqret.baselines.settings import NoSettings
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray

#: From about this many products in a pair, FFT is faster (measured on one core).
FFT_PAYS = 1_000_000
#: A window counts as constant if its deviation is below this share of the deviation of its whole series.
FLAT = 1e-6
NEUTRAL = 0.5


@dataclass(frozen=True)
class Windowed:
    """Standardised series with prefix sums, which give mean and deviation of any window in constant time."""

    series: Series
    sums: FloatArray  # of the values; series i has one more sum than values and begins at offsets[i] + i
    squares: FloatArray

    @classmethod
    def of(cls, series: Series) -> Windowed:
        sums, squares = _prefix_sums(series.values, series.offsets)
        return cls(series, sums, squares)

    def row(self, index: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values and prefix sums of one series."""
        begin, stop = self.series.offsets[index], self.series.offsets[index + 1]
        place = slice(begin + index, stop + index + 1)
        return self.series.values[begin:stop], self.sums[place], self.squares[place]


class MASS(SeriesBaseline[Windowed]):
    """Ranks by the best z-normalised match of the shorter series of inter-event times within the longer."""

    name: ClassVar[str] = "mass"

    def __init__(self) -> None:
        super().__init__(NoSettings())

    def prepare(self, sequences: EventSequences) -> Windowed:
        return Windowed.of(standardise(inter_event_times(sequences)))

    def compare(self, queries: Windowed, candidates: Windowed) -> FloatArray:
        scores = _best_correlations(
            queries.series.values, queries.series.offsets, queries.sums, queries.squares,
            candidates.series.values, candidates.series.offsets, candidates.sums, candidates.squares,
            FFT_PAYS,
        )  # fmt: skip
        for query, candidate in np.argwhere(np.isnan(scores)):  # left for the FFT
            pair = (queries, int(query)), (candidates, int(candidate))
            (short, i), (long, j) = sorted(pair, key=lambda side: side[0].series.lengths[side[1]])
            scores[query, candidate] = _correlation_by_fft(*short.row(i), *long.row(j))
        return scores


def _correlation_by_fft(
    short: FloatArray, short_sums: FloatArray, short_squares: FloatArray,
    long: FloatArray, long_sums: FloatArray, long_squares: FloatArray,
) -> float:  # fmt: skip
    """The same as `_slide`, with all products computed by FFT."""
    m, windows = len(short), len(long) - len(short) + 1
    size = 1 << (len(long) - 1).bit_length()  # long enough that no window wraps around
    products = np.fft.irfft(np.fft.rfft(long, size) * np.fft.rfft(short, size).conj(), size)[:windows]
    mean = (long_sums[m:] - long_sums[:-m]) / m
    variance = (long_squares[m:] - long_squares[:-m]) / m - mean**2
    flat, short_flat = variance < FLAT**2, short_squares[m] == 0.0
    values = products / (m * np.sqrt(np.where(flat, 1.0, variance)))
    values[flat != short_flat] = NEUTRAL
    values[flat & short_flat] = 1.0
    return float(min(values.max(), 1.0))


@numba.njit(cache=True)
def _prefix_sums(values: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray]:
    rows = len(offsets) - 1
    sums, squares = np.zeros(len(values) + rows), np.zeros(len(values) + rows)
    for row in range(rows):
        place = offsets[row] + row
        for i in range(offsets[row], offsets[row + 1]):
            sums[place + 1] = sums[place] + values[i]
            squares[place + 1] = squares[place] + values[i] * values[i]
            place += 1
    return sums, squares


@numba.njit(cache=True, fastmath={"reassoc", "contract"})
def _slide(
    short: FloatArray, short_sums: FloatArray, short_squares: FloatArray,
    long: FloatArray, long_sums: FloatArray, long_squares: FloatArray,
) -> float:  # fmt: skip
    """Largest correlation of `short` with a window of `long`; each is standardised, or all 0 if constant."""
    m = len(short)
    if m == 1:
        return NEUTRAL
    short_flat = short_squares[m] == 0.0
    best = -1.0
    for begin in range(len(long) - m + 1):
        mean = (long_sums[begin + m] - long_sums[begin]) / m
        variance = (long_squares[begin + m] - long_squares[begin]) / m - mean * mean
        if variance < FLAT * FLAT:
            value = 1.0 if short_flat else NEUTRAL
        elif short_flat:
            value = NEUTRAL
        else:
            product = 0.0
            for i in range(m):
                product += short[i] * long[begin + i]
            value = product / (m * np.sqrt(variance))  # the short one has mean 0 and deviation 1
        best = max(best, value)
    return min(best, 1.0)


@numba.njit(cache=True)
def _best_correlations(
    q: FloatArray, q_offsets: IntArray, q_sums: FloatArray, q_squares: FloatArray,
    c: FloatArray, c_offsets: IntArray, c_sums: FloatArray, c_squares: FloatArray,
    limit: int,
) -> FloatArray:  # fmt: skip
    """(queries, candidates); NaN where a pair needs more than `limit` products."""
    scores = np.empty((len(q_offsets) - 1, len(c_offsets) - 1))
    for i in range(scores.shape[0]):
        a, b = q_offsets[i], q_offsets[i + 1]
        for j in range(scores.shape[1]):
            x, y = c_offsets[j], c_offsets[j + 1]
            m = min(b - a, y - x)
            if m > 1 and m * (max(b - a, y - x) - m + 1) > limit:
                scores[i, j] = np.nan
            elif b - a <= y - x:
                scores[i, j] = _slide(
                    q[a:b], q_sums[a + i : b + i + 1], q_squares[a + i : b + i + 1],
                    c[x:y], c_sums[x + j : y + j + 1], c_squares[x + j : y + j + 1],
                )  # fmt: skip
            else:
                scores[i, j] = _slide(
                    c[x:y], c_sums[x + j : y + j + 1], c_squares[x + j : y + j + 1],
                    q[a:b], q_sums[a + i : b + i + 1], q_squares[a + i : b + i + 1],
                )  # fmt: skip
    return scores
