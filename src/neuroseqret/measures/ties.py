"""An order for equal scores that favours nobody.

Corpus files are often sorted, so breaking ties by row or by id could put relevant sequences first or last. Here a tie
is broken by a hash of (seed, query id, candidate id). The order is the same on every machine and for every method,
differs from query to query, and knows nothing of relevance. Averaged over queries it gives what a random order of the
tied candidates would give.
"""

from __future__ import annotations

import hashlib

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequences import IntArray

Keys = npt.NDArray[np.uint64]


def id_keys(ids: pa.Array, seed: int = 0) -> Keys:
    """Return a 64-bit hash of each id and the seed: (n,)."""
    salt = int(seed).to_bytes(16, "little", signed=True)
    digests = b"".join(hashlib.blake2b(id_.encode(), digest_size=8, salt=salt).digest() for id_ in ids.to_pylist())
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


@numba.njit(cache=True, inline="always")
def _mix(x):  # type: ignore[no-untyped-def]
    """Mix the bits of x by splitmix64's finaliser: each input bit flips each output bit with probability 1/2."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@numba.njit(cache=True)
def _pair_keys(query_keys, candidate_keys):  # type: ignore[no-untyped-def]
    out = np.empty((len(query_keys), candidate_keys.shape[1]), np.uint64)
    for q in range(len(query_keys)):
        shared = candidate_keys[0 if candidate_keys.shape[0] == 1 else q]
        for c in range(candidate_keys.shape[1]):
            out[q, c] = _mix(query_keys[q] + _mix(shared[c]))
    return out


def pair_keys(query_keys: Keys, candidate_keys: Keys) -> Keys:
    """Return a 64-bit hash of every (query, candidate) pair: (queries, candidates).

    `candidate_keys` is (candidates,) if all queries have the same candidates, else (queries, candidates).
    """
    made: Keys = _pair_keys(query_keys, np.atleast_2d(candidate_keys))
    return made


@numba.njit(cache=True)
def _order_keys(bits, query_keys, candidate_keys):  # type: ignore[no-untyped-def]
    out = np.empty(bits.shape, np.int64)
    for q in range(bits.shape[0]):
        shared = candidate_keys[0 if candidate_keys.shape[0] == 1 else q]
        for c in range(bits.shape[1]):
            pattern = np.int64(bits[q, c])
            # The bits of IEEE numbers are signed magnitudes; in two's complement they compare like integers.
            if pattern < 0:
                pattern = -(pattern & np.int64(0x7FFFFFFF))
            tie = _mix(query_keys[q] + _mix(shared[c])) >> np.uint64(32)
            out[q, c] = (pattern << np.int64(32)) | np.int64(tie)
    return out


def order_keys(scores: npt.NDArray[np.float32], query_keys: Keys, candidate_keys: Keys) -> IntArray:
    """Return integers that sort like the scores, with equal scores in the order of their hashes: (queries, candidates).

    The upper 32 bits come from the score (finite or infinite, never NaN), the lower 32 from the hash of the pair. A
    plain sort of these integers is a ranking without ties; larger is better.
    """
    bits = (np.ascontiguousarray(scores, np.float32) + np.float32(0)).view(np.int32)  # + 0 makes -0 equal to 0
    made: IntArray = _order_keys(bits, query_keys, np.atleast_2d(candidate_keys))
    return made
