"""Scoring of candidates: dot products of the query with rows of the embedding matrix, and the best k of them.

The kernels read the rows where they lie (no gathered copy) and give the same score for a row whichever way it was
found, so that exhaustive and hashed search agree to the last bit. Order: by score, falling; of equal scores the
lower row first.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]


@numba.njit(cache=True, nogil=True, fastmath=True)
def _dot(matrix, row, query):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    total = np.float32(0)
    for d in range(matrix.shape[1]):
        total += matrix[row, d] * query[d]
    return total


@numba.njit(cache=True, nogil=True)
def _keep(scores, rows, size, capacity, score, row):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Insert into the sorted best list if it belongs there; gives the new size."""
    if size == capacity:
        last = size - 1
        if score < scores[last] or (score == scores[last] and row > rows[last]):
            return size
        size -= 1
    at = size
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and rows[at - 1] > row)):
        scores[at], rows[at] = scores[at - 1], rows[at - 1]
        at -= 1
    scores[at], rows[at] = score, row
    return size + 1


@numba.njit(cache=True, nogil=True)
def best_rows(matrix, query, candidates, allowed, scores, rows):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Best of the candidate rows; `allowed` is a mask over all rows, or empty for all. Gives how many were kept."""
    size, masked = 0, len(allowed) > 0
    for i in range(len(candidates)):
        row = candidates[i]
        if masked and not allowed[row]:
            continue
        size = _keep(scores, rows, size, len(rows), _dot(matrix, row, query), row)
    return size


@numba.njit(cache=True, nogil=True)
def best_in_runs(matrix, query, begins, stops, allowed, scores, rows):  # type: ignore[no-untyped-def]  # pragma: no cover
    """The same over runs of rows; gives how many were kept and how many were scored."""
    size, compared, masked = 0, 0, len(allowed) > 0
    for run in range(len(begins)):
        for row in range(begins[run], stops[run]):
            if masked and not allowed[row]:
                continue
            compared += 1
            size = _keep(scores, rows, size, len(rows), _dot(matrix, row, query), row)
    return size, compared


@numba.njit(cache=True, nogil=True)
def row_scores(matrix, query, rows, scores):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Dot product of every given row."""
    for i in range(len(rows)):
        scores[i] = _dot(matrix, rows[i], query)
