"""A small labelled set and a quickly trained first stage, for the tests of the cross-attention models."""

from __future__ import annotations

from functools import cache

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.self_attention.model import SelfAttention

GROUPS = 5

QUICK = {"process": {"loop": {"steps": 3}, "width": 8, "queries": 4}, "memory": {"out_of_fold_steps": 40}}


@cache
def small_set(seed: int = 0) -> tuple[EventSequences, EventSequences]:
    """Queries (with `split`) and corpus: groups differ in rate, in marks and in what follows what."""
    rng = np.random.default_rng(seed)

    def sequence(group: int) -> tuple[np.ndarray, np.ndarray]:
        length = int(rng.integers(5, 30))
        marks = [int(rng.integers(3))]
        for _ in range(length - 1):
            marks.append((marks[-1] + 1 + group % 2) % 3 if rng.random() < 0.7 else int(rng.integers(3)))
        return np.cumsum(rng.lognormal(0.5 * (group // 2), 0.7, length)), np.array(marks)

    def batch(number: int, name: str) -> EventSequences:
        groups = np.arange(number) % GROUPS
        return EventSequences.from_lists(
            [sequence(g) for g in groups],
            ids=[f"{name}{i}" for i in range(number)],
            groups=[f"g{g}" for g in groups],
            mark_names=["a", "b", "c"],
            time_unit="hours",
        )

    split = ["train", "train", "validation", "test"]
    queries = batch(40, "q").with_column("split", [split[(i // GROUPS) % 4] for i in range(40)])
    return queries, batch(100, "c")


@cache
def first_stage() -> SelfAttention:
    queries, corpus = small_set()
    quick = {"warm_up": {"steps": 2}, "joint": {"steps": 4}, "head": {"steps": 40}, "selection": {"steps": 10}}
    return SelfAttention(encoder={"width": 8}, **quick).fit(queries, corpus, seed=0)


def awkward() -> EventSequences:
    """One event, equal times, times of 1e12 and 1e-9, unseen marks, and 50,000 events."""
    long = np.arange(50_000.0)
    return EventSequences.from_lists(
        [
            ([3.0], [0]),
            ([2.0, 2.0, 2.0], [0, 1, 2]),
            ([1e12, 2e12, 3e12 + 1], [1, 1, 0]),
            ([1e-9, 2e-9, 3e-9], [2, 0, 1]),
            ([1.0, 2.0, 4.0], [7, 99, 1]),
            (long, (long % 3).astype(int)),
        ],
        mark_names=[f"m{k}" for k in range(100)],
    )


@cache
def fitted(preset: str) -> CrossAttention:
    """A second stage of a preset that took a few steps."""
    queries, corpus = small_set()
    return CrossAttention(preset, first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)
