"""Queries cut short, as in the paper's tables by length."""

from __future__ import annotations

from typing import Literal

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.windows import take_runs

Cut = Literal["whole", "10-50", "50-100"]

CUTS: dict[Cut, tuple[int, int] | None] = {"whole": None, "10-50": (10, 50), "50-100": (50, 100)}


def cut_queries(queries: EventSequences, cut: Cut, seed: int) -> EventSequences:
    """Cut a run of Unif(low, high) events out of every query at a random place; shorter queries stay whole.

    Queries keep their ids. They are drawn by id, so the same queries are asked whole and cut.
    """
    bounds = CUTS[cut]
    if bounds is None:
        return queries
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.integers(bounds[0], bounds[1] + 1, len(queries)), queries.lengths)
    begin = np.floor(rng.random(len(queries)) * (queries.lengths - lengths + 1)).astype(np.int64)
    return take_runs(queries, np.arange(len(queries)), begin, begin + lengths).with_column("id", queries.ids)
