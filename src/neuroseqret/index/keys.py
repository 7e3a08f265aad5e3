"""64-bit hashes of ids and of events, for whole columns at once.

An id's hash finds it among millions without a dictionary of strings; the hash of the events tells whether a sequence
that is added again is the same one. Two different values share a hash with probability 2^-64.
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
    for run in range(len(out)):
        state = out[run]
        for i in range(offsets[run], offsets[run + 1]):
            state = _mix(state, np.uint64(words[i]))
        out[run] = _mix(state, np.uint64(offsets[run + 1] - offsets[run]))


def hash_strings(values: pa.Array) -> Hashes:
    """Hash of every string: (n,) int64."""
    column = values.cast(STRING)
    _, offsets, data = column.buffers()
    cuts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    octets = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    out = np.zeros(len(column), np.uint64)
    _hash_runs(octets, cuts, out)
    return out.view(np.int64)


def hash_events(sequences: EventSequences) -> Hashes:
    """Hash of times, marks and observation window of every sequence: (n,) int64.

    A bound that is not known leaves no trace, whether the others in the table have one or not. That a start is not
    taken for an end follows from where they lie: no event is before the one or after the other.
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


class KeySet:
    """A growing map from id hash to event hash: sorted runs whose sizes double, so that adding N costs O(N log N)."""

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
        self._runs = [*self._runs[:kept], run]  # at once: nobody ever sees a part

    def find(self, keys: Hashes) -> tuple[npt.NDArray[np.bool_], Hashes]:
        """Whether each key is there, and its value (0 where not)."""
        there, values = np.zeros(len(keys), bool), np.zeros(len(keys), np.int64)
        for run_keys, run_values in self._runs:  # newer runs overrule older ones
            at = np.minimum(np.searchsorted(run_keys, keys), len(run_keys) - 1)
            hit = run_keys[at] == keys
            there |= hit
            values[hit] = run_values[at[hit]]
        return there, values


def _first_of_each(keys: Hashes, values: Hashes) -> tuple[Hashes, Hashes]:
    distinct, first = np.unique(keys, return_index=True)
    return distinct, values[first]
