"""The small data set behind the golden figures. Do not change it: every figure would move."""

from __future__ import annotations

import numpy as np

from neuroseqret.data.sequences import EventSequences

SEED = 3
GROUPS, PER_GROUP, QUERIES_PER_GROUP, MARKS = 10, 8, 5, 4


def golden_data() -> tuple[EventSequences, EventSequences]:
    """Return (queries, corpus). Each group has its own rate, rhythm and mixture of marks; some windows end late."""
    rng = np.random.default_rng(20231)
    rate = np.exp(rng.normal(0, 0.25, GROUPS))
    rhythm = rng.uniform(0.5, 3.0, GROUPS)
    mixture = rng.dirichlet(np.full(MARKS, 6.0), GROUPS)

    def rows(number: int, kind: str) -> EventSequences:
        group = np.repeat(np.arange(GROUPS), number)
        lengths = rng.integers(3, 90, len(group))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        times, marks = [], []
        for g, length in zip(group, lengths, strict=True):
            gaps = rng.gamma(rhythm[g], 1 / (rhythm[g] * rate[g]), length)
            gaps[rng.random(length) < 0.05] = 0.0
            times.append(np.cumsum(gaps))
            marks.append(rng.choice(MARKS, length, p=mixture[g]))
        last = np.array([t[-1] for t in times])
        metadata = {"source": [f"{kind}{g}-{i // 2}" for g in range(GROUPS) for i in range(number)]}
        if kind == "q":
            metadata["split"] = [("train", "train", "train", "validation", "test")[i % 5] for i in range(len(group))]
        return EventSequences.from_arrays(
            np.concatenate(times),
            np.concatenate(marks),
            offsets,
            ids=[f"{kind}{i}" for i in range(len(group))],
            starts=np.zeros(len(group)),
            ends=last + np.where(rng.random(len(group)) < 0.5, 0.0, rng.exponential(2.0, len(group))),
            groups=[f"g{g}" for g in group],
            metadata=metadata,
            mark_names=("a", "b", "c", "d"),
            time_unit="seconds",
        )

    return rows(QUERIES_PER_GROUP, "q"), rows(PER_GROUP, "c")


def extreme_queries() -> EventSequences:
    """Return queries at the limits of what is clipped: a long pause, a burst, equal times, few events, many events."""
    rng = np.random.default_rng(7)
    gaps = rng.gamma(2.0, 0.5, 40)
    pause, burst = gaps.copy(), gaps.copy()
    pause[20], burst[10:30] = 1e5, 1e-6
    every = [pause, burst, np.zeros(12), gaps[:2], np.tile(gaps, 8)]
    return EventSequences.from_lists(
        [(np.cumsum(one).tolist(), rng.integers(0, MARKS, len(one)).tolist()) for one in every],
        ids=["pause", "burst", "equal", "few", "many"],
        mark_names=("a", "b", "c", "d"),
        time_unit="seconds",
    )
