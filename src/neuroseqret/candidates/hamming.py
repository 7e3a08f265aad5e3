"""The nearest codes by Hamming distance: a scan of all codes, without tables.

The scan reads 8 bytes per sequence, an embedding of 64 dimensions has 256. So it costs a small part of exhaustive
scoring, and it finds better candidates than buckets since it sees all R bits at once.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.codes import Codes
from neuroseqret.processes.lanes import popcount

Rows = npt.NDArray[np.int32]


@numba.njit(cache=True, nogil=True)
def _distances(codes, code, distances, counts):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Fill `distances` with every code's distance to `code`, and add to `counts` how often each distance occurs."""
    n, words = codes.shape
    if words == 1:
        query = code[0]
        for i in range(n):
            distances[i] = np.uint16(popcount(codes[i, 0] ^ query))
    else:
        for i in range(n):
            distance = np.uint64(0)
            for word in range(words):
                distance += popcount(codes[i, word] ^ code[word])
            distances[i] = np.uint16(distance)
    for i in range(n):
        counts[distances[i]] += 1


@numba.njit(cache=True, nogil=True)
def _within(distances, radius, at_radius, found):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Find the rows nearer than `radius`, and the first `at_radius` rows at it; return how many."""
    number = 0
    for i in range(len(distances)):
        distance = distances[i]
        if distance < radius:
            found[number] = i
            number += 1
        elif distance == radius and at_radius > 0:
            found[number] = i
            number += 1
            at_radius -= 1
    return number


def hamming_distances(codes: Codes, code: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    """Return the distance of every code to one code: (n,)."""
    distances = np.empty(len(codes), np.uint16)
    _distances(codes, code, distances, np.zeros(64 * codes.shape[1] + 1, np.int64))
    return distances


def nearest_codes(codes: Codes, code: npt.NDArray[np.uint64], wanted: int) -> Rows:
    """Return the `wanted` rows with the nearest codes, in rising order; of equal distances the lower rows."""
    wanted = min(wanted, len(codes))
    if wanted <= 0:
        return np.empty(0, np.int32)
    counts = np.zeros(64 * codes.shape[1] + 1, np.int64)
    distances = np.empty(len(codes), np.uint16)
    _distances(codes, code, distances, counts)
    radius, nearer = _radius(counts, wanted)
    found = np.empty(wanted, np.int32)
    return found[: _within(distances, radius, wanted - nearer, found)]


@numba.njit(cache=True, nogil=True)
def _distances_of(codes, code, rows, distances, counts):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Do the same as `_distances` for the given rows alone."""
    for i in range(len(rows)):
        distance = np.uint64(0)
        for word in range(codes.shape[1]):
            distance += popcount(codes[rows[i], word] ^ code[word])
        distances[i] = np.uint16(distance)
        counts[distances[i]] += 1


def nearest_of(codes: Codes, code: npt.NDArray[np.uint64], rows: Rows, wanted: int) -> Rows:
    """Return the `wanted` of the given rows with the nearest codes; of equal distances those given first."""
    if len(rows) <= wanted:
        return rows
    counts = np.zeros(64 * codes.shape[1] + 1, np.int64)
    distances = np.empty(len(rows), np.uint16)
    _distances_of(codes, code, rows, distances, counts)
    radius, nearer = _radius(counts, wanted)
    found = np.empty(wanted, np.int32)
    return rows[found[: _within(distances, radius, wanted - nearer, found)]]


def _radius(counts: npt.NDArray[np.int64], wanted: int) -> tuple[int, int]:
    """Return the distance within which there are `wanted` codes, and how many codes are nearer than it."""
    reached = np.cumsum(counts)
    radius = int(np.searchsorted(reached, wanted))
    return radius, int(reached[radius - 1]) if radius else 0
