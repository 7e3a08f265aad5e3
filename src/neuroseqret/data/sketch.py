"""A sketch of the sequences that a model learned from, to notice when it is judged with queries that it knows.

Every sequence has a hash of its id and its times. The sketch keeps the k smallest hashes of n sequences, or all of them
if there are fewer (bottom-k sampling). It tells for certain whether the model learned from a sequence whose hash is not
above the largest one kept: a share of about k / n of the sequences that are asked for.
"""

from __future__ import annotations

import hashlib
import warnings
from base64 import b64decode, b64encode
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences

KEPT = 1024  # hashes: 11 kB of text

Hashes = npt.NDArray[np.uint64]


class LeakWarning(UserWarning):
    """A model is judged with queries that it learned from, so its figures are too high."""


def sketch_of(parts: Iterable[EventSequences]) -> str:
    """Return the sketch of all sequences of several parts, as text."""
    smallest = np.unique(np.concatenate([_hashes(part) for part in parts]))[:KEPT]
    return b64encode(smallest.astype("<u8").tobytes()).decode()


def known_rows(sketch: str, sequences: EventSequences) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which sequences were learned from, and of which that can be told: two (n,) bool."""
    learned, asked = np.frombuffer(b64decode(sketch), "<u8"), _hashes(sequences)
    complete = len(learned) < KEPT
    return np.isin(asked, learned), np.full(len(asked), True) if complete else asked <= learned[-1]


def check_not_learned(sketch: str | None, queries: EventSequences, name: str) -> None:
    """Warn if a model learned from some of the queries that it is judged with."""
    if sketch is None:
        return
    known, told = known_rows(sketch, queries)
    if not known.any():
        return
    first = queries.ids[int(np.flatnonzero(known)[0])].as_py()
    of = f"the {len(queries):,} queries" if told.all() else f"{int(told.sum()):,} queries of which that can be told"
    warnings.warn(
        LeakWarning(
            f"{name} learned from {int(known.sum()):,} of {of} (the first is {first!r}), so its figures are too high; "
            "judge it with the data folder that it was trained with, or name the method to have it trained anew"
        ),
        stacklevel=3,
    )


def _hashes(sequences: EventSequences) -> Hashes:
    """Return a hash of the id and the times of every sequence: (n,)."""
    times, offsets = np.ascontiguousarray(sequences.times, "<f8").view(np.uint8), 8 * sequences.offsets
    digests = (
        hashlib.blake2b(name.encode() + b"\0" + times[begin:end].tobytes(), digest_size=8).digest()
        for name, begin, end in zip(sequences.ids.to_pylist(), offsets[:-1], offsets[1:], strict=True)
    )
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)
