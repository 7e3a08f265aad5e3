"""Bucket tables (Gionis, Indyk, Motwani 1999): M tables, each of L random bit positions of the code.

A sequence lies in bucket k of table m where k is the number that its L bits at that table's positions spell. The
candidates of a query are the union of its M buckets. A table is its rows sorted by bucket, with offsets: bucket k
of table m holds `rows[m, offsets[m, k]:offsets[m, k + 1]]`, rising.

Multi-probe (Lv et al. 2007): further buckets differ from the query's in a set of flipped bits; they are visited in
the order of sum of |margin| over the flipped bits, across all tables, until enough candidates are met.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.codes import Codes
from neuroseqret.errors import UserError

Rows = npt.NDArray[np.int32]
MAX_PROBES = 1 << 16


@dataclass(frozen=True)
class Workspace:
    """Scratch arrays of one searching thread, so that a query allocates nothing but its result."""

    seen: npt.NDArray[np.uint64]
    found: Rows
    costs: npt.NDArray[np.float32]
    flips: npt.NDArray[np.int64]

    @classmethod
    def of(cls, size: int) -> Workspace:
        heap = 2 * MAX_PROBES + 1024
        return cls(
            np.zeros(size // 64 + 1, np.uint64),
            np.empty(size, np.int32),
            np.empty(heap, np.float32),
            np.empty(heap, np.int64),
        )


@dataclass(frozen=True)
class BucketTables:
    """M tables over n sequences."""

    positions: Rows  # (M, L) which bits of the code
    rows: Rows  # (M, n) sorted by bucket
    offsets: Rows  # (M, 2^L + 1)

    @classmethod
    def build(
        cls, codes: Codes, bits: int, tables: int = 10, length: int | None = None, target: float = 0.005, seed: int = 0
    ) -> BucketTables:
        """`length` is L; without it the smallest L whose expected candidates are at most `target` of the corpus."""
        if not 1 <= tables <= 255:
            raise UserError(f"there are 1 to 255 bucket tables, not {tables}")
        if length is not None and not 1 <= length <= min(bits, 24):
            raise UserError(f"a bucket table takes 1 to {min(bits, 24)} of the {bits} bits, not {length}")
        rng = np.random.default_rng(seed)
        drawn = np.stack([rng.permutation(bits) for _ in range(tables)]).astype(np.int32)
        if length is None:
            length = choose_length(codes, drawn, target)
        positions = np.ascontiguousarray(drawn[:, :length])
        rows = np.empty((tables, len(codes)), np.int32)
        offsets = np.zeros((tables, (1 << length) + 1), np.int32)
        codes = np.ascontiguousarray(codes)
        for table in range(tables):
            _sort_into_buckets(bucket_keys(codes, positions[table]), rows[table], offsets[table])
        return cls(positions, rows, offsets)

    @property
    def length(self) -> int:
        return self.positions.shape[1]

    @property
    def nbytes(self) -> int:
        return self.rows.nbytes + self.offsets.nbytes + self.positions.nbytes

    def candidates(
        self,
        code: npt.NDArray[np.uint64],
        margins: npt.NDArray[np.float32],
        wanted: int = 0,
        probes: int = 0,
        workspace: Workspace | None = None,
    ) -> Rows:
        """Rows in the query's buckets, then in further ones until `wanted` rows and `probes` extra buckets are met.

        The result is in no particular order and has no row twice. It is shorter than `wanted` only if `MAX_PROBES`
        buckets do not hold as many.
        """
        space = workspace or Workspace.of(self.rows.shape[1])
        number = _probe(
            self.positions,
            self.rows,
            self.offsets,
            code,
            np.abs(margins),
            min(wanted, self.rows.shape[1]),
            min(probes, MAX_PROBES),
            space.seen,
            space.found,
            space.costs,
            space.flips,
        )
        return space.found[:number].copy()


def choose_length(codes: Codes, positions: Rows, target: float, sample: int = 100_000) -> int:
    """The smallest L at which M buckets hold at most `target` of the corpus, for a query distributed like it.

    A random member shares a bucket with a fraction sum_b (n_b / n)^2 of the corpus, which for even buckets is
    2^-L and for piled-up codes more; M tables meet at most M times that. L stops at log2(n) - 2, where further
    buckets would cost memory and split little, and at 20.
    """
    if not 0 < target <= 1:
        raise UserError(f"the target fraction lies in (0, 1], not {target}")
    n = len(codes)
    longest = max(1, min(positions.shape[1], int(np.log2(max(n, 2))) - 2, 20))
    part = np.ascontiguousarray(codes[:: max(1, n // sample)])
    keys = [bucket_keys(part, row[:longest]) for row in np.ascontiguousarray(positions[:, :longest])]
    for length in range(1, longest):
        share = 0.0
        for key in keys:
            counts = np.bincount(key & ((1 << length) - 1)).astype(float)
            # Without the member itself, which always shares its own bucket.
            share += (counts * (counts - 1)).sum() / max(len(part) * (len(part) - 1), 1)
        if share <= target:
            return length
    return longest


@numba.njit(cache=True, nogil=True)
def bucket_keys(codes: Codes, positions: Rows) -> npt.NDArray[np.int64]:  # pragma: no cover (compiled)
    """Bucket number of every code in a table: bit l of the number is the code's bit at `positions[l]`."""
    n = codes.shape[0]
    keys = np.zeros(n, np.int64)
    for i in range(n):
        key = np.int64(0)
        for bit in range(len(positions)):
            position = positions[bit]
            key |= np.int64((codes[i, position >> 6] >> np.uint64(position & 63)) & np.uint64(1)) << bit
        keys[i] = key
    return keys


@numba.njit(cache=True, nogil=True)
def _sort_into_buckets(keys: npt.NDArray[np.int64], rows: Rows, offsets: Rows) -> None:  # pragma: no cover
    """Counting sort, stable: O(n + 2^L)."""
    for key in keys:
        offsets[key + 1] += 1
    for bucket in range(len(offsets) - 1):
        offsets[bucket + 1] += offsets[bucket]
    following = offsets[:-1].copy()
    for row in range(len(keys)):
        key = keys[row]
        rows[following[key]] = row
        following[key] += 1


@numba.njit(cache=True, nogil=True)
def _collect(rows, begin, stop, seen, found, number):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Append the unseen rows of one bucket; `seen` is a bitset."""
    for i in range(begin, stop):
        row = rows[i]
        word, bit = row >> 6, np.uint64(1) << np.uint64(row & 63)
        if not seen[word] & bit:
            seen[word] |= bit
            found[number] = row
            number += 1
    return number


@numba.njit(cache=True, nogil=True)
def _push(costs, flips, size, cost, flip):  # type: ignore[no-untyped-def]  # pragma: no cover
    at = size
    while at > 0 and costs[(at - 1) >> 1] > cost:
        costs[at], flips[at] = costs[(at - 1) >> 1], flips[(at - 1) >> 1]
        at = (at - 1) >> 1
    costs[at], flips[at] = cost, flip
    return size + 1


@numba.njit(cache=True, nogil=True)
def _pop(costs, flips, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Remove the cheapest entry of the heap (the caller has read it); gives the new size."""
    size -= 1
    cost, flip, at = costs[size], flips[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and costs[child + 1] < costs[child]:
            child += 1
        if costs[child] >= cost:
            break
        costs[at], flips[at] = costs[child], flips[child]
        at = child
    costs[at], flips[at] = cost, flip
    return size


@numba.njit(cache=True, nogil=True)
def _probe(  # type: ignore[no-untyped-def]  # pragma: no cover
    positions, rows, offsets, code, certainty, wanted, probes, seen, found, costs, flips
):
    """Exact buckets of all tables first, then flipped ones in rising order of cost, over all tables at once.

    The flipped sets of one table form a tree over its bits sorted by certainty: a set whose last bit (by rank) is j
    has two children, j replaced by j + 1 and j + 1 added; both cost at least as much. A set is a bit mask over
    ranks; an entry of the heap is table << 24 | mask.
    """
    tables, length = positions.shape
    number = 0
    keys = np.zeros(tables, np.int64)
    for table in range(tables):
        for bit in range(length):
            position = positions[table, bit]
            keys[table] |= np.int64((code[position >> 6] >> np.uint64(position & 63)) & np.uint64(1)) << bit
        number = _collect(
            rows[table], offsets[table, keys[table]], offsets[table, keys[table] + 1], seen, found, number
        )
    if number < wanted or probes > 0:
        ranks = np.empty((tables, length), np.int64)
        size = 0
        for table in range(tables):
            ranks[table] = np.argsort(certainty[positions[table]])
            size = _push(costs, flips, size, certainty[positions[table, ranks[table, 0]]], np.int64(table) << 24 | 1)
        done = 0
        while size > 0 and done < MAX_PROBES and (number < wanted or done < probes):
            cost, flip = costs[0], flips[0]
            size = _pop(costs, flips, size)
            table, mask = flip >> 24, flip & 0xFFFFFF
            key, last = keys[table], 0
            for rank in range(length):
                if mask >> rank & 1:
                    key ^= np.int64(1) << ranks[table, rank]
                    last = rank
            number = _collect(rows[table], offsets[table, key], offsets[table, key + 1], seen, found, number)
            done += 1
            if last + 1 < length:
                here = certainty[positions[table, ranks[table, last]]]
                following = certainty[positions[table, ranks[table, last + 1]]]
                added = mask | np.int64(1) << (last + 1)
                size = _push(costs, flips, size, cost + following, np.int64(table) << 24 | added)
                moved = added ^ np.int64(1) << last
                size = _push(costs, flips, size, cost - here + following, np.int64(table) << 24 | moved)
    for i in range(number):
        seen[found[i] >> 6] = np.uint64(0)
    return number
