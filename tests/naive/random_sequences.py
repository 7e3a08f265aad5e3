"""Random sequences of all awkward kinds, for the tests of the models."""

from __future__ import annotations

import numpy as np

from neuroseqret.data.sequences import EventSequences


def random_sequences(
    seed: int, number: int = 6, marks: int = 3, longest: int = 12, windows: bool = True, groups: int = 0
) -> EventSequences:
    """Unequal lengths from 1, ties, windows that start before and end after the events."""
    rng = np.random.default_rng(seed)
    lists, starts, ends = [], [], []
    for _ in range(number):
        length = int(rng.integers(1, longest + 1))
        gaps = rng.lognormal(0, 1, length) * (rng.random(length) < 0.8)
        times = 5.0 + np.cumsum(gaps)
        lists.append((times, rng.integers(0, marks, length)))
        starts.append(times[0] - (rng.random() < 0.5) * rng.random())
        ends.append(times[-1] + (rng.random() < 0.5) * rng.random())
    window = {"starts": starts, "ends": ends} if windows else {}
    labels = {"groups": [str(i % groups) for i in range(number)]} if groups else {}
    return EventSequences.from_lists(lists, ids=[f"s{seed}-{i}" for i in range(number)], **window, **labels)
