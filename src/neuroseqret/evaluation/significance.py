"""Is one method better than another, or just luckier? Tests and confidence intervals over queries.

All methods answer the same queries, so the values are paired by query. Tables use the paired randomisation test
(Fisher's randomisation test). Holm's correction keeps the chance of any false mark in a whole table, over methods and
data sets, below the level.

The paper marks results by a "two-sided Fisher's test with p <= 0.1" and does not say which one. In retrieval that name
means Fisher's randomisation test: `randomisation_test`. The other reading is Fisher's exact test on the number of
queries won: `fisher_exact_test`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import FloatArray
from neuroseqret.errors import UserError

_BLOCK = 1 << 24  # numbers held at a time


def randomisation_test(
    first: npt.ArrayLike, second: npt.ArrayLike, *, permutations: int = 20_000, seed: int = 0
) -> FloatArray:
    """Return the p-value of each comparison by the two-sided paired randomisation test of equal means over queries.

    `first` and `second` hold one value per query: (queries,) or (queries, comparisons). Under the null hypothesis the
    names of the two methods can be exchanged within each query:
    p = (1 + #{|sum_q s_q d_q| >= |sum_q d_q|}) / (1 + permutations), with d = first - second and random signs s_q that
    are the same for all comparisons. The observed labelling counts as one, so p is valid and never 0.
    """
    difference = _paired(first, second)
    queries = len(difference)
    observed = np.abs(difference.sum(axis=0))
    # The same sum in another order differs in its last digits and must still count as equal.
    threshold = observed - 1e-9 * np.maximum(np.abs(difference).sum(axis=0), 1e-300)
    generator = np.random.default_rng(seed)
    as_large = np.zeros(difference.shape[1], np.int64)
    rows = max(1, min(permutations, _BLOCK // max(queries, 1)))
    for begin in range(0, permutations, rows):
        shape = (min(rows, permutations - begin), queries)
        flipped = generator.integers(0, 2, shape, dtype=np.int8).astype(np.float64)
        # sum of s d with s = 1 - 2 flipped
        sums = difference.sum(axis=0) - 2.0 * (flipped @ difference)
        as_large += (np.abs(sums) >= threshold).sum(axis=0)
    p: FloatArray = ((1.0 + as_large) / (1.0 + permutations)).astype(np.float64)
    return p


def fisher_exact_test(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    """Return the p-value of each comparison by the two-sided Fisher's exact test on the number of queries won.

    The 2 x 2 table is [[won, lost], [lost, won]]: its rows are the methods. Queries with equal values are left out.
    Every query is counted in both rows, as if the methods had answered different queries, so the test finds
    differences more easily than it should: prefer `randomisation_test`.
    """
    difference = _paired(first, second)
    won, lost = (difference > 0).sum(axis=0), (difference < 0).sum(axis=0)
    return np.array([_fisher_exact(int(w), int(l_)) for w, l_ in zip(won, lost, strict=True)])


def _fisher_exact(won: int, lost: int) -> float:
    """Return the probability of all tables with the same margins n = won + lost that are no likelier than this one.

    The upper left cell is hypergeometric: P(k) = C(n, k) C(n, n - k) / C(2n, n) = C(n, k)^2 / C(2n, n).
    """
    n = won + lost
    log_choose = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)])
    log_p = 2 * log_choose - (math.lgamma(2 * n + 1) - 2 * math.lgamma(n + 1))
    p = np.exp(log_p)
    return float(min(1.0, p[p <= p[won] * (1 + 1e-7)].sum()))


def bootstrap_interval(
    values: npt.ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Return the percentile bootstrap interval (low, high) of the mean over queries, for each column of `values`.

    Queries are drawn with replacement, the same for all columns. For the difference of two methods pass the
    differences query by query.
    """
    columns = _columns(values)
    queries = len(columns)
    if not 0 < level < 1:
        raise UserError(f"a confidence level lies between 0 and 1, not {level}")
    generator = np.random.default_rng(seed)
    means = np.empty((resamples, columns.shape[1]))
    rows = max(1, min(resamples, _BLOCK // max(queries, 1)))
    for begin in range(0, resamples, rows):
        number = min(rows, resamples - begin)
        drawn = generator.integers(0, queries, (number, queries)) + queries * np.arange(number)[:, None]
        times_drawn = np.bincount(drawn.ravel(), minlength=number * queries).reshape(number, queries)
        means[begin : begin + number] = times_drawn @ columns / queries
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Return all p-values (any shape) after Holm's step-down correction; NaN means no test and is left out.

    Sorted p_(1) <= ... <= p_(m): the corrected p_(i) is max_{j <= i} min(1, (m - j + 1) p_(j)). Rejecting where it is
    at most alpha keeps the chance of any false rejection at most alpha, however the tests depend on each other.
    """
    p = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    flat = p[tested]
    order = np.argsort(flat, kind="stable")
    scaled = np.minimum(1.0, flat[order] * np.arange(len(flat), 0, -1))
    result = np.empty(len(flat))
    result[order] = np.maximum.accumulate(scaled) if len(flat) else scaled
    corrected[tested] = result
    return corrected


def _columns(values: npt.ArrayLike) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not len(array):
        raise UserError("a test over queries needs at least one query")
    if not np.isfinite(array).all():
        raise UserError("a test over queries needs a finite value for every query")
    return array


def _paired(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray:
    a, b = _columns(first), _columns(second)
    if a.shape != b.shape:
        raise UserError(f"paired values of the same queries are needed, not {a.shape} and {b.shape}")
    return a - b
