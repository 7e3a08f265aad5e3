"""The nearest codes by Hamming distance: a scan of all codes, no tables.

Eight bytes a sequence are read where the embedding has 256, so the scan costs a small part of exhaustive scoring
and its candidates are better than those of buckets: it sees all R bits at once.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic

from neuroseqret.candidates.codes import Codes

Rows = npt.NDArray[np.int32]


@intrinsic
def _popcount(typing_context: Any, word: Any) -> Any:  # pragma: no cover (compiled)
    """The processor's count of one bits in a 64-bit word; numba has no function for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(64), [ir.IntType(64)])
        function = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)], kind)
        return builder.call(function, arguments)

    return types.uint64(types.uint64), generate


@numba.njit(cache=True, nogil=True)
def _distances(codes, code, distances, counts):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    n, words = codes.shape
    if words == 1:
        query = code[0]
        for i in range(n):
            distances[i] = np.uint16(_popcount(codes[i, 0] ^ query))
    else:
        for i in range(n):
            distance = np.uint64(0)
            for word in range(words):
                distance += _popcount(codes[i, word] ^ code[word])
            distances[i] = np.uint16(distance)
    for i in range(n):
        counts[distances[i]] += 1


@numba.njit(cache=True, nogil=True)
def _within(distances, radius, at_radius, found):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Rows nearer than `radius`, and the first `at_radius` of those at it."""
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
    """Distance of every code to one: (n,)."""
    distances = np.empty(len(codes), np.uint16)
    _distances(codes, code, distances, np.zeros(64 * codes.shape[1] + 1, np.int64))
    return distances


def nearest_codes(codes: Codes, code: npt.NDArray[np.uint64], wanted: int) -> Rows:
    """The `wanted` rows with the nearest codes (of equally near ones the first rows), rising."""
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
    for i in range(len(rows)):
        distance = np.uint64(0)
        for word in range(codes.shape[1]):
            distance += _popcount(codes[rows[i], word] ^ code[word])
        distances[i] = np.uint16(distance)
        counts[distances[i]] += 1


def nearest_of(codes: Codes, code: npt.NDArray[np.uint64], rows: Rows, wanted: int) -> Rows:
    """The `wanted` of the given rows with the nearest codes (of equally near ones the first given)."""
    if len(rows) <= wanted:
        return rows
    counts = np.zeros(64 * codes.shape[1] + 1, np.int64)
    distances = np.empty(len(rows), np.uint16)
    _distances_of(codes, code, rows, distances, counts)
    radius, nearer = _radius(counts, wanted)
    found = np.empty(wanted, np.int32)
    return rows[found[: _within(distances, radius, wanted - nearer, found)]]


def _radius(counts: npt.NDArray[np.int64], wanted: int) -> tuple[int, int]:
    """The distance at which `wanted` codes are reached, and how many lie nearer."""
    reached = np.cumsum(counts)
    radius = int(np.searchsorted(reached, wanted))
    return radius, int(reached[radius - 1]) if radius else 0
