"""Sequences that are easy to tell apart, and settings with which `self` learns to in a second."""

from __future__ import annotations

import numpy as np

import small_settings
from neuroseqret.data.sequences import EventSequences

SMALL = {
    **small_settings.SMALL,
    "warm_up": {"steps": 5},
    "joint": {"steps": 10},
    "head_batch": 16,
    "head": {"steps": 40, "evaluations": 2},
}
PAPER = {**{k: SMALL[k] for k in ("encoder", "batch", "warm_up")}, "joint": {"steps": 10, "evaluations": 1}}


def rhythms(seed: int, number: int, groups: int = 4, **columns) -> EventSequences:
    """Groups that differ in pace and in their favourite mark: easy to tell apart."""
    rng = np.random.default_rng(seed)
    labels = np.arange(number) % groups
    lists = []
    for label in labels:
        n = int(rng.integers(8, 24))
        times = np.cumsum(rng.lognormal(0.5 * label, 0.3, n))
        lists.append((times, np.where(rng.random(n) < 0.7, label, rng.integers(0, groups, n))))
    names = [f"r{seed}-{i}" for i in range(number)]
    return EventSequences.from_lists(lists, ids=names, groups=[f"g{x}" for x in labels], **columns)


def splits(number: int) -> dict:
    return {"metadata": {"split": [("train", "train", "validation", "test")[i // 4 % 4] for i in range(number)]}}


CORPUS, QUERIES = rhythms(0, 80), rhythms(1, 48, **splits(48))
