"""Bucket tables (Gionis, Indyk, Motwani 1999): M tables, each of L random bit positions of the code.

A sequence is in bucket k of table m if its L bits at that table's positions, read as a number, are k. The candidates
of a query are the union of its M buckets. A table is stored as its rows sorted by bucket, with offsets: bucket k of
table m holds `rows[m, offsets[m, k]:offsets[m, k + 1]]` in rising order.

Multi-probe (Lv et al. 2007): further buckets differ from the query's bucket in some flipped bits. They are visited in
rising order of the sum of |margin| over the flipped bits, across all tables, until there are enough candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.arrays import are_as_written, are_runs, are_within, open_array
from neuroseqret.candidates.codes import Codes
from neuroseqret.errors import UserError

Rows = npt.NDArray[np.int32]
MAX_PROBES = 1 << 16
MAX_TABLES = 255
MAX_LENGTH = 24  # bits of a table: the flipped bits of one are a mask of as many (see `_probe`)
_FILES = {"positions": "table_positions.npy", "rows": "table_rows.npy", "offsets": "table_offsets.npy"}


@dataclass(frozen=True)
class Workspace:
    """Scratch arrays of one searching thread, so that a query allocates only its result."""

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

    positions: Rows  # (M, L) bits of the code that a table looks at
    rows: Rows  # (M, n) sorted by bucket
    offsets: Rows  # (M, 2^L + 1)

    @classmethod
    def build(
        cls,
        codes: Codes,
        bits: int,
        tables: int = 10,
        length: int | None = None,
        target: float = 0.005,
        seed: int = 0,
        positions: Rows | None = None,
    ) -> BucketTables:
        """Build the tables; without `length` (L), take the smallest L that finds at most `target` of the corpus.

        `positions` are bits per table, of which the first L are used; without them, random ones are.
        """
        check_tables(bits, tables, length)
        rng = np.random.default_rng(seed)
        drawn = positions
        if drawn is None:
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

    def save(self, folder: Path) -> None:
        """Write one `.npy` file per array."""
        for name, file in _FILES.items():
            np.save(folder / file, getattr(self, name))

    @classmethod
    def open(cls, folder: Path) -> BucketTables:
        """Open what `save` wrote, as memory maps."""
        return cls(*(open_array(folder / file) for file in _FILES.values()))

    def fits(self, n: int, bits: int) -> bool:
        """Return whether the arrays are those of tables over n codes of `bits` bits, and lead nowhere else."""
        tables, length = self.positions.shape
        if not (1 <= tables <= MAX_TABLES and 1 <= length <= MAX_LENGTH):
            return False
        written = are_as_written(
            [
                (self.positions, (tables, length), np.int32),
                (self.rows, (tables, n), np.int32),
                (self.offsets, (tables, (1 << length) + 1), np.int32),
            ]
        )
        return written and are_within(self.positions, bits) and are_runs(self.offsets, n) and are_within(self.rows, n)

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
        """Return the rows of the query's buckets, then of more buckets, up to `wanted` rows and `probes` more buckets.

        Rows come in no particular order, each once. There are fewer than `wanted` only if `MAX_PROBES` buckets hold
        fewer.
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


def check_tables(bits: int, tables: int, length: int | None) -> None:
    """Raise a `UserError` if there can be no such tables over codes of `bits` bits."""
    if not 1 <= tables <= MAX_TABLES:
        raise UserError(f"the number of bucket tables must be 1 to {MAX_TABLES}, not {tables}")
    longest = min(bits, MAX_LENGTH)
    if length is not None and not 1 <= length <= longest:
        raise UserError(f"a bucket table must take 1 to {longest} of the {bits} bits, not {length}")


def choose_length(codes: Codes, positions: Rows, target: float, sample: int = 100_000) -> int:
    """Return the smallest L at which a query's M buckets hold at most `target` of the corpus, on average.

    The query is taken as distributed like the corpus. In one table it shares its bucket with a fraction
    sum_b (n_b / n)^2 of the corpus: 2^-L if the buckets are even, more if they are not. M tables hold at most M times
    as much. L is at most log2(n) - 2, since more buckets would cost memory and split little, and at most 20.
    """
    if not 0 < target <= 1:
        raise UserError(f"the target fraction must be above 0 and at most 1, not {target}")
    n = len(codes)
    longest = max(1, min(positions.shape[1], int(np.log2(max(n, 2))) - 2, 20))
    part = np.ascontiguousarray(codes[:: max(1, n // sample)])
    keys = [bucket_keys(part, row[:longest]) for row in np.ascontiguousarray(positions[:, :longest])]
    for length in range(1, longest):
        share = 0.0
        for key in keys:
            counts = np.bincount(key & ((1 << length) - 1)).astype(float)
            # counts - 1: a sequence always shares its bucket with itself.
            share += (counts * (counts - 1)).sum() / max(len(part) * (len(part) - 1), 1)
        if share <= target:
            return length
    return longest


@numba.njit(cache=True, nogil=True)
def bucket_keys(codes: Codes, positions: Rows) -> npt.NDArray[np.int64]:  # pragma: no cover (compiled)
    """Return every code's bucket number in one table: bit l of the number is the code's bit at `positions[l]`."""
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
    """Fill `rows` and `offsets` by a stable counting sort: O(n + 2^L)."""
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
    """Append the rows of one bucket that were not seen yet; `seen` is a bitset. Return the new number of rows."""
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
    """Add an entry to the heap; return the new size."""
    at = size
    while at > 0 and costs[(at - 1) >> 1] > cost:
        costs[at], flips[at] = costs[(at - 1) >> 1], flips[(at - 1) >> 1]
        at = (at - 1) >> 1
    costs[at], flips[at] = cost, flip
    return size + 1


@numba.njit(cache=True, nogil=True)
def _pop(costs, flips, size):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Remove the cheapest entry of the heap, which the caller has read; return the new size."""
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
    """Visit the query's own buckets in all tables, then flipped ones in rising order of cost over all tables.

    The sets of flipped bits of one table form a tree over its bits, sorted by certainty. A set whose last bit has
    rank j has two children: one with j replaced by j + 1, one with j + 1 added. Both cost at least as much. A set is a
    bit mask over ranks; an entry of the heap is table << 24 | mask. Return the number of rows found.
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
