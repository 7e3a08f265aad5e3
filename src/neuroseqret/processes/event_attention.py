r"""Cross attention between the events of two sequences, and how well each event agrees with what it attends to.

Every event of the query attends to the events of the candidate by their local states x and y (see `local_states`), and
the other way round,

.. math:: \alpha_{ij} = \mathrm{softmax}_j(\beta\, x_i^\top y_j), \qquad \alpha'_{ij} = \mathrm{softmax}_i(\beta\,
          x_i^\top y_j).

The agreement is the mean cosine of an event and the state that it attends to, in both directions:

.. math:: A(H_q, H_c) = \frac{1}{2 I} \sum_i x_i^\top \sum_j \alpha_{ij}\, y_j
          + \frac{1}{2 J} \sum_j y_j^\top \sum_i \alpha'_{ij}\, x_i

For large beta this is the MaxSim of late interaction. It is a sum over pairs of events, so it splits exactly over them.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import IntArray

Floats = npt.NDArray[np.float32]


def agreements(query: Floats, candidates: Floats, offsets: IntArray, sharpness: float) -> Floats:
    """Return A of one query (I, D) and every candidate, whose states are `candidates[offsets[c]:offsets[c + 1]]`."""
    found = np.zeros(len(offsets) - 1, np.float32)
    if len(query) and len(candidates):
        products = query @ candidates.T  # (I, all events)
        _agree(products, offsets, np.float32(sharpness), found)
    return found


def shares(query: Floats, candidate: Floats, sharpness: float) -> npt.NDArray[np.float64]:
    """Return A of two sequences split over pairs of events: (I, J), which sums to A."""
    if not len(query) or not len(candidate):
        return np.zeros((len(query), len(candidate)))
    products = query.astype(np.float64) @ candidate.T.astype(np.float64)
    raised = np.exp(sharpness * (products - 1))
    there, back = raised / raised.sum(1, keepdims=True), raised / raised.sum(0, keepdims=True)
    parts: npt.NDArray[np.float64] = products * (there / len(query) + back / len(candidate)) / 2
    return parts


@numba.njit(cache=True, fastmath={"contract", "reassoc", "nsz", "nnan"})
def _agree(products: Any, offsets: Any, sharpness: Any, found: Any) -> None:  # pragma: no cover
    """Fill `found` (candidates,). States are unit vectors, so no exponent is above 0 by more than rounding."""
    asked, one, zero = products.shape[0], np.float32(1.0), np.float32(0.0)
    widest = 1
    for c in range(len(offsets) - 1):
        widest = max(widest, offsets[c + 1] - offsets[c])
    raised = np.empty(widest, np.float32)
    column, column_weighted = np.empty(widest, np.float32), np.empty(widest, np.float32)
    for c in range(len(offsets) - 1):
        first, number = offsets[c], offsets[c + 1] - offsets[c]
        if number == 0:
            continue
        for j in range(number):
            column[j] = zero
            column_weighted[j] = zero
        there = zero
        for i in range(asked):
            row = products[i, first : first + number]
            for j in range(number):
                raised[j] = np.exp(sharpness * (row[j] - one))
            total, weighted = zero, zero
            for j in range(number):
                e, w = raised[j], raised[j] * row[j]
                total += e
                weighted += w
                column[j] += e
                column_weighted[j] += w
            there += weighted / total
        back = zero
        for j in range(number):
            back += column_weighted[j] / column[j]
        found[c] = there / np.float32(2 * asked) + back / np.float32(2 * number)
