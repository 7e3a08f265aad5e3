"""Simulated data in which the paper's assumptions hold, so that each part of its model has something to do.

- `warps`: relevant sequences are monotone time warps of each other. Every group has a pattern of event times; a
  sequence of the group is that pattern with a little noise and some events missing. Queries are seen through one clock,
  which runs fast in the first half of the window and slow in the second: U has to undo it.
- `realisations`: relevant sequences are realisations of one point process (`neuroseqret.datasets.simulate` with equal
  clocks), so that nothing but the process tells them apart.
"""

from __future__ import annotations

import numpy as np

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.splits import split_queries
from neuroseqret.datasets.simulate import simulate
from neuroseqret.readers.data_folder import DataFolder

WINDOW = 100.0
NOISE, KEPT = 0.01, 0.9  # sd of an event's time as a share of the window; probability that an event is seen


def warps(
    groups: int = 60,
    per_group: int = 12,
    queries_per_group: int = 10,
    events: int = 20,
    half: float = 0.75,
    seed: int = 0,
) -> DataFolder:
    """Return sequences of one mark; the clock of the queries shows `half` of the window when half of it has passed."""
    rng = np.random.default_rng(seed)
    patterns = np.sort(rng.random((groups, events)), axis=1)
    clock = [0.0, half, 1.0]
    corpus = _seen(patterns, per_group, [0.0, 0.5, 1.0], "corpus", rng)
    queries = split_queries(_seen(patterns, queries_per_group, clock, "query", rng), seed)
    return DataFolder(None, corpus, queries, Relevance.from_groups(queries, corpus), {"name": "simulated warps"})


def realisations(groups: int = 24, per_group: int = 20, queries_per_group: int = 12, seed: int = 0) -> DataFolder:
    """Return realisations of random Hawkes, self-correcting and renewal processes under equal clocks."""
    return simulate(groups, per_group, queries_per_group, warp=0.0, scale=0.0, seed=seed)


def _seen(patterns: np.ndarray, number: int, clock: list[float], name: str, rng: np.random.Generator) -> EventSequences:
    """Return noisy sequences of every pattern, their times as a clock shows them at 0, half and the whole window."""
    times, lengths, ids, groups = [], [], [], []
    for group, pattern in enumerate(patterns):
        for row in range(number):
            noisy = np.clip(pattern + NOISE * rng.normal(size=len(pattern)), 0, 1)
            kept = np.sort(noisy[rng.random(len(pattern)) < KEPT])
            times.append(WINDOW * np.interp(kept, [0.0, 0.5, 1.0], clock))
            lengths.append(len(kept))
            ids.append(f"{name} {group}-{row}")
            groups.append(f"pattern {group}")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return EventSequences.from_arrays(
        np.concatenate(times),
        np.zeros(offsets[-1], np.int32),
        offsets,
        ids=ids,
        starts=np.zeros(len(ids)),
        ends=np.full(len(ids), WINDOW),
        groups=groups,
        metadata={"source": ids},
        mark_names=["event"],
        time_unit="seconds",
    )
