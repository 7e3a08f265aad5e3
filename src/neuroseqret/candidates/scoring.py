"""Scoring of candidates: dot products of the query with rows of the embedding matrix, and the best k of them.

The kernels read the rows in place, without a gathered copy. A row gets the same score whichever way it was found, so
that exhaustive and hashed search agree to the last bit. Results are in falling order of score; of equal scores the
lower row comes first.

A kernel lets other threads go on, and when it is done its thread has to wait for Python's lock like any other. If the
work is short, that wait is longer than the work. `suited` gives a form of the kernel that keeps the lock then.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int32]
#: Up to this length a list is kept in order by insertion: fastest for short lists, quadratic time for long ones.
SHORT = 128
#: A kernel that multiplies at most this many pairs of numbers (about 0.1 ms) keeps Python's lock.
LOCKED = 1 << 20


@numba.njit(cache=True, nogil=True, fastmath=True, forceinline=True)
def _dot(matrix, row, query):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Return the dot product in float32; the matrix holds float32 or bytes (see `rounding`)."""
    total = np.float32(0)
    for d in range(matrix.shape[1]):
        total += np.float32(matrix[row, d]) * query[d]
    return total


@numba.njit(cache=True, nogil=True, forceinline=True)
def _keep(scores, rows, size, capacity, score, row):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Add a row to the best so far if it is one of them; return the new size.

    A short list is kept in order. A long one is a heap with the worst row on top; `_settle` sorts it in the end.
    """
    if size == capacity:
        worst = 0 if capacity > SHORT else size - 1
        if score < scores[worst] or (score == scores[worst] and row > rows[worst]):
            return size
    if capacity > SHORT:
        return _push(scores, rows, size, capacity, score, row)
    return _insert(scores, rows, size, capacity, score, row)


@numba.njit(cache=True, nogil=True)
def _insert(scores, rows, size, capacity, score, row):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Insert into an ordered list; if the list is full, its last row is dropped. Return the new size."""
    at = min(size, capacity - 1)
    while at > 0 and (scores[at - 1] < score or (scores[at - 1] == score and rows[at - 1] > row)):
        scores[at], rows[at] = scores[at - 1], rows[at - 1]
        at -= 1
    scores[at], rows[at] = score, row
    return min(size + 1, capacity)


@numba.njit(cache=True, nogil=True)
def _push(scores, rows, size, capacity, score, row):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Insert into a heap; if the heap is full, its top is dropped. Return the new size."""
    if size == capacity:
        _sink(scores, rows, size, score, row)
        return size
    at = size
    while at > 0:
        up = (at - 1) // 2
        if scores[up] < score or (scores[up] == score and rows[up] > row):
            break
        scores[at], rows[at] = scores[up], rows[up]
        at = up
    scores[at], rows[at] = score, row
    return size + 1


@numba.njit(cache=True, nogil=True)
def _sink(scores, rows, size, score, row):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Replace the heap's top by a row, then move it down to its place."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        other = child + 1
        if other < size and (
            scores[other] < scores[child] or (scores[other] == scores[child] and rows[other] > rows[child])
        ):
            child = other
        if score < scores[child] or (score == scores[child] and row > rows[child]):
            break
        scores[at], rows[at] = scores[child], rows[child]
        at = child
    scores[at], rows[at] = score, row


@numba.njit(cache=True, nogil=True)
def _settle(scores, rows, size):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Sort a long list, best first: move the worst remaining row to the end, again and again."""
    if len(rows) <= SHORT:
        return
    for last in range(size - 1, 0, -1):
        score, row = scores[last], rows[last]
        scores[last], rows[last] = scores[0], rows[0]
        _sink(scores, rows, last, score, row)


@numba.njit(cache=True, nogil=True)
def best_rows(matrix, query, candidates, allowed, scores, rows):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Fill `scores` and `rows` with the best candidates; return how many there are.

    `allowed` is a mask over all rows, or empty to allow all of them.
    """
    size, masked = 0, len(allowed) > 0
    for i in range(len(candidates)):
        row = candidates[i]
        if masked and not allowed[row]:
            continue
        size = _keep(scores, rows, size, len(rows), _dot(matrix, row, query), row)
    _settle(scores, rows, size)
    return size


@numba.njit(cache=True, nogil=True)
def best_in_runs(matrix, query, begins, stops, allowed, scores, rows):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Do the same over runs of rows; return how many were kept and how many were scored."""
    size, compared, masked = 0, 0, len(allowed) > 0
    for run in range(len(begins)):
        for row in range(begins[run], stops[run]):
            if masked and not allowed[row]:
                continue
            compared += 1
            size = _keep(scores, rows, size, len(rows), _dot(matrix, row, query), row)
    _settle(scores, rows, size)
    return size, compared


@numba.njit(cache=True, nogil=True)
def _sift(order, scores, at, size):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Restore the heap of cells from position `at` down: best score on top, of equal scores the lower cell."""
    cell = order[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size:
            left, right = order[child], order[child + 1]
            if scores[right] > scores[left] or (scores[right] == scores[left] and right < left):
                child += 1
        other = order[child]
        if scores[cell] > scores[other] or (scores[cell] == scores[other] and cell < other):
            break
        order[at] = other
        at = child
    order[at] = cell


@numba.njit(cache=True, nogil=True)
def best_in_cells(  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    matrix, query, centres, offsets, wanted, allowed, scores, rows
):
    """Do the same over the cells of the nearest centres, one after another until `wanted` rows were visited.

    A heap gives the cells in order of nearness. Few of them are needed, and sorting all centres would take longer than
    scoring the rows. Return how many rows were kept and how many were scored.
    """
    cells = len(centres)
    nearness, order = np.empty(cells, np.float32), np.arange(cells)
    for cell in range(cells):
        nearness[cell] = _dot(centres, cell, query)
    for at in range(cells // 2 - 1, -1, -1):
        _sift(order, nearness, at, cells)
    kept, compared, visited, masked = 0, 0, 0, len(allowed) > 0
    while cells > 0 and visited < wanted:
        cell = order[0]
        cells -= 1
        order[0] = order[cells]
        _sift(order, nearness, 0, cells)
        visited += offsets[cell + 1] - offsets[cell]
        for row in range(offsets[cell], offsets[cell + 1]):
            if masked and not allowed[row]:
                continue
            compared += 1
            kept = _keep(scores, rows, kept, len(rows), _dot(matrix, row, query), row)
    _settle(scores, rows, kept)
    return kept, compared


@numba.njit(cache=True)
def _locked_best_rows(  # type: ignore[no-untyped-def]  # pragma: no cover
    matrix, query, candidates, allowed, scores, rows
):
    return best_rows(matrix, query, candidates, allowed, scores, rows)


@numba.njit(cache=True)
def _locked_best_in_runs(  # type: ignore[no-untyped-def]  # pragma: no cover
    matrix, query, begins, stops, allowed, scores, rows
):
    return best_in_runs(matrix, query, begins, stops, allowed, scores, rows)


@numba.njit(cache=True)
def _locked_best_in_cells(  # type: ignore[no-untyped-def]  # pragma: no cover
    matrix, query, centres, offsets, wanted, allowed, scores, rows
):
    return best_in_cells(matrix, query, centres, offsets, wanted, allowed, scores, rows)


_LOCKED_FORM = {
    best_rows: _locked_best_rows,
    best_in_runs: _locked_best_in_runs,
    best_in_cells: _locked_best_in_cells,
}


def suited(kernel: Any, products: int) -> Any:
    """Return the form of a kernel that keeps Python's lock if it has few products of numbers to compute."""
    return _LOCKED_FORM[kernel] if products <= LOCKED else kernel
