"""Small simulated retrieval sets, for tests that need a signal to find and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np

import neuroseqret as nsr
from neuroseqret.data.sequences import EventSequences


def simulate(
    groups: int = 6, per_group: int = 12, queries_per_group: int = 5, events: int = 30, seed: int = 0
) -> tuple[EventSequences, EventSequences]:
    """(queries, corpus): each group has its own rate and its own mixture of 4 marks; two rows share a source."""
    generator = np.random.default_rng(seed)
    rate = np.exp(generator.normal(0, 0.7, groups))
    mixture = generator.dirichlet(np.ones(4), groups)

    def rows(number: int, kind: str) -> EventSequences:
        group = np.repeat(np.arange(groups), number)
        gaps = generator.exponential(1 / rate[group][:, None], (len(group), events))
        marks = np.stack([generator.choice(4, events, p=mixture[g]) for g in group])
        metadata = {"source": [f"{kind}{g}-{i // 2}" for g in range(groups) for i in range(number)]}
        if kind == "q":
            metadata["split"] = [("train", "train", "validation", "test", "test")[i % 5] for i in range(len(group))]
        return EventSequences.from_arrays(
            np.cumsum(gaps, axis=1).ravel(),
            marks.ravel(),
            np.arange(len(group) + 1) * events,
            ids=[f"{kind}{i}" for i in range(len(group))],
            groups=[f"g{g}" for g in group],
            metadata=metadata,
            mark_names=("a", "b", "c", "d"),
        )

    return rows(queries_per_group, "q"), rows(per_group, "c")


def simulate_retrieval(*sizes: int, **options: Any) -> tuple[EventSequences, EventSequences]:
    """(corpus, queries) of `neuroseqret.simulate`."""
    data = nsr.simulate(*sizes, **options)
    assert data.queries is not None
    return data.corpus, data.queries
