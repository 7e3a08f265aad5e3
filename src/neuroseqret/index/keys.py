"""64-bit hashes of ids and of events, for whole columns at once.

The hash of an id finds it among millions without a dictionary of strings. The hash of the events tells whether a
sequence that is added again has changed. Two different values share a hash with probability 2^-64.
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequences import STRING, EventSequences

Hashes = npt.NDArray[np.int64]


@numba.njit(cache=True, nogil=True)
def _mix(state, word):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """One step of a multiplicative hash with the finaliser of splitmix64."""
    state = (state ^ word) * np.uint64(0x9E3779B97F4A7C15)
    state ^= state >> np.uint64(30)
    state *= np.uint64(0xBF58476D1CE4E5B9)
    state ^= state >> np.uint64(27)
    return state


@numba.njit(cache=True, nogil=True)
def _hash_runs(words, offsets, out):  # type: ignore[no-untyped-def]  # pragma: no cover (compiled)
    """Update `out[run]` with the words of each run and with their number."""
    for run in range(len(out)):
        state = out[run]
        for i in range(offsets[run], offsets[run + 1]):
            state = _mix(state, np.uint64(words[i]))
        out[run] = _mix(state, np.uint64(offsets[run + 1] - offsets[run]))


def hash_strings(values: pa.Array) -> Hashes:
    """Return the hash of every string: (n,) int64."""
    column = values.cast(STRING)
    _, offsets, data = column.buffers()
    cuts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    octets = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    out = np.zeros(len(column), np.uint64)
    _hash_runs(octets, cuts, out)
    return out.view(np.int64)


def hash_events(sequences: EventSequences) -> Hashes:
    """Return the hash of times, marks, start and end of every sequence: (n,) int64.

    A start or end that is not known does not change the hash, so it does not matter whether other sequences of the
    table have one. A start cannot be taken for an end: the start is at or before all events, the end at or after them.
    """
    out = np.zeros(len(sequences), np.uint64)
    _hash_runs(sequences.times.view(np.uint64), sequences.offsets, out)
    _hash_runs(np.ascontiguousarray(sequences.marks).view(np.uint32), sequences.offsets, out)
    for bound in (sequences.starts, sequences.ends):
        if bound is not None:
            known = ~np.isnan(bound)
            of_known = out[known]
            _hash_runs(bound[known].view(np.uint64), np.arange(len(of_known) + 1), of_known)
            out[known] = of_known
    return out.view(np.int64)


def add_vectors(hashes: Hashes, vectors: npt.NDArray[np.float32]) -> Hashes:
    """Return the hashes with a row of numbers added to each: (n,) int64."""
    out = hashes.view(np.uint64).copy()
    words = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    _hash_runs(words.ravel(), np.arange(len(out) + 1) * words.shape[1], out)
    return out.view(np.int64)


class KeySet:
    """A growing map from id hash to event hash, kept as sorted runs that double in size: adding N takes O(N log N)."""

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Hashes]] = []

    def add(self, keys: Hashes, values: Hashes) -> None:
        """Add pairs; a key that is there already gets the new value."""
        if not len(keys):
            return
        run, kept = _first_of_each(keys, values), len(self._runs)
        while kept and len(self._runs[kept - 1][0]) < 2 * len(run[0]):
            kept -= 1
            run = _first_of_each(*(np.concatenate(pair) for pair in zip(run, self._runs[kept], strict=True)))
        self._runs = [*self._runs[:kept], run]  # in one step: other threads see the old runs or the new ones

    def find(self, keys: Hashes) -> tuple[npt.NDArray[np.bool_], Hashes]:
        """Return whether each key is there, and its value (0 if it is not)."""
        there, values = np.zeros(len(keys), bool), np.zeros(len(keys), np.int64)
        for run_keys, run_values in self._runs:  # newer runs come later and win
            at = np.minimum(np.searchsorted(run_keys, keys), len(run_keys) - 1)
            hit = run_keys[at] == keys
            there |= hit
            values[hit] = run_values[at[hit]]
        return there, values


def _first_of_each(keys: Hashes, values: Hashes) -> tuple[Hashes, Hashes]:
    """Return the distinct keys, sorted, with the first value of each."""
    distinct, first = np.unique(keys, return_index=True)
    return distinct, values[first]


def rows_by_hash(ids: pa.Array) -> tuple[Hashes, npt.NDArray[np.int64]]:
    """Return the hashes of ids in ascending order, and the row of each: what `find_rows` looks ids up in."""
    hashes = hash_strings(ids)
    order = np.argsort(hashes, kind="stable")
    return hashes[order], order


def find_rows(
    table: tuple[Hashes, npt.NDArray[np.int64]], wanted: Hashes
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (positions among the wanted hashes, rows), one pair for each row that has a wanted hash."""
    hashes, rows = table
    low, high = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
    number = high - low
    places = np.repeat(low - np.cumsum(number) + number, number) + np.arange(number.sum())
    return np.repeat(np.arange(len(wanted)), number), rows[places]
