r"""Sharp soft-DTW of many pairs of series at once, compiled and vectorised over candidates.

Soft-DTW puts a Gibbs distribution over all alignment paths, with weights exp(-cost / gamma). Its *sharp* form is the
expected cost under that distribution, :math:`\langle E, C \rangle` with :math:`E = \nabla_C \text{soft-DTW}_\gamma(C)`.
The usual way is a forward pass for soft-DTW and a backward pass for E. One forward pass is enough, since two recursions
can be computed together (A and B run over the three preceding cells):

.. math:: R_{ij} = C_{ij} - \gamma \log \sum_A e^{-R_A / \gamma}, \qquad
          S_{ij} = C_{ij} + \sum_A \frac{e^{-R_A / \gamma}}{\sum_B e^{-R_B / \gamma}} S_A,

and :math:`S_{nm}` is the result. :math:`C_{ij} = \frac12 (a_i - b_j)^2`, as in the original.

The cells of one pair depend on each other, those of different pairs do not: `LANES` candidates of similar length are
computed together, in loops that the compiler turns into vector instructions. It cannot do this with calls of exp and
log; the two polynomials below, exact to 1e-9, replace them.
"""

from __future__ import annotations

import numba
import numpy as np

from neuroseqret.data.sequences import FloatArray, IntArray

LANES = 16
_EXP_STEP = -1.0 / 128
_ROOT_3, _LOG_ROOT_3 = 3.0**0.5, float(np.log(3.0) / 2)
# Without the check for division by zero and with sums in any order, loops over lanes become vector instructions.
_VECTOR = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}}


@numba.njit(inline="always", **_VECTOR)
def _exp_minus(x: float) -> float:
    """exp(-x) for x >= 0: Taylor's series at x / 128, squared seven times; x is cut off at 60."""
    x = x if x < 60.0 else 60.0
    y = x * _EXP_STEP
    e = 1 + y * (1 + y * (1 / 2 + y * (1 / 6 + y * (1 / 24 + y * (1 / 120 + y * (1 / 720 + y * (1 / 5040)))))))
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    e *= e
    return e * e


@numba.njit(inline="always", **_VECTOR)
def _log_to_3(x: float) -> float:
    """log(x) for 1 <= x <= 3: the series of the inverse hyperbolic tangent about the square root of 3."""
    s = (x - _ROOT_3) / (x + _ROOT_3)
    q = s * s
    tail = 1 / 7 + q * (1 / 9 + q * (1 / 11 + q * (1 / 13 + q * (1 / 15))))
    return _LOG_ROOT_3 + 2 * s * (1 + q * (1 / 3 + q * (1 / 5 + q * tail)))


@numba.njit(cache=True, **_VECTOR)
def _align(
    a: FloatArray, a_lengths: IntArray, b: FloatArray, b_lengths: IntArray, gamma: float,
    soft: FloatArray, sharp: FloatArray, state: FloatArray, result: FloatArray,
) -> None:  # fmt: skip
    """Sharp costs of `LANES` pairs: a (n, LANES) and b (m, LANES), each lane padded after its own length.

    A cell depends on earlier cells only, so padding does not affect the result of any lane.
    """
    inverse = 1 / gamma
    diagonal, diagonal_sharp, left, left_sharp = state[0], state[1], state[2], state[3]
    for j in range(len(b) + 1):
        for lane in range(LANES):
            soft[j, lane] = np.inf if j else 0.0
            sharp[j, lane] = 0.0
    for i in range(len(a)):
        for lane in range(LANES):
            diagonal[lane] = soft[0, lane]
            diagonal_sharp[lane] = 0.0
            left[lane] = np.inf
            left_sharp[lane] = 0.0
            soft[0, lane] = np.inf
        for j in range(len(b)):
            for lane in range(LANES):
                d, u, l = diagonal[lane], soft[j + 1, lane], left[lane]  # noqa: E741
                above = sharp[j + 1, lane]
                least = d if d < u else u
                least = least if least < l else l
                weight_d = _exp_minus((d - least) * inverse)
                weight_u = _exp_minus((u - least) * inverse)
                weight_l = _exp_minus((l - least) * inverse)
                weight = weight_d + weight_u + weight_l
                cost = 0.5 * (a[i, lane] - b[j, lane]) * (a[i, lane] - b[j, lane])
                value = cost + least - gamma * _log_to_3(weight)
                mean = (weight_d * diagonal_sharp[lane] + weight_u * above + weight_l * left_sharp[lane]) / weight
                diagonal[lane] = u
                diagonal_sharp[lane] = above
                left[lane] = value
                left_sharp[lane] = cost + mean
                soft[j + 1, lane] = value
                sharp[j + 1, lane] = cost + mean
        for lane in range(LANES):
            if a_lengths[lane] == i + 1:
                result[lane] = sharp[b_lengths[lane], lane]


@numba.njit(cache=True)
def sharp_costs(
    a: FloatArray, a_offsets: IntArray, a_rows: IntArray, b: FloatArray, b_offsets: IntArray, b_rows: IntArray,
    gamma: float, room: int,
) -> FloatArray:  # fmt: skip
    """Sharp costs of the pairs (a_rows[k], b_rows[k]): (pairs,).

    `room` is the length of the longest series. Successive pairs are computed together, and their lanes are as
    long as the longest series among them, so order the pairs by length.
    """
    costs, result = np.empty(len(a_rows)), np.empty(LANES)
    lanes_a, lanes_b = np.zeros((room, LANES)), np.zeros((room, LANES))
    lengths_a, lengths_b = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    soft, sharp, state = np.empty((room + 1, LANES)), np.empty((room + 1, LANES)), np.empty((4, LANES))
    for begin in range(0, len(a_rows), LANES):
        n, m = 0, 0
        for lane in range(LANES):
            pair = min(begin + lane, len(a_rows) - 1)  # spare lanes repeat the last pair
            n = max(n, _load(a, a_offsets, a_rows[pair], lanes_a, lengths_a, lane))
            m = max(m, _load(b, b_offsets, b_rows[pair], lanes_b, lengths_b, lane))
        _align(lanes_a[:n], lengths_a, lanes_b[:m], lengths_b, gamma, soft, sharp, state, result)
        for lane in range(min(LANES, len(a_rows) - begin)):
            costs[begin + lane] = result[lane]
    return costs


@numba.njit(cache=True)
def _load(values: FloatArray, offsets: IntArray, row: int, lanes: FloatArray, lengths: IntArray, lane: int) -> int:
    """Copy a series into a lane and return its length. Values left by an earlier series are padding."""
    length = offsets[row + 1] - offsets[row]
    for i in range(length):
        lanes[i, lane] = values[offsets[row] + i]
    lengths[lane] = length
    return length
