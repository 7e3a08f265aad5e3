"""A task made from an unlabelled corpus: sub-sequences of one sequence are relevant to one another.

The paper's heuristic for data without labels: from each sequence some sub-sequences (runs of events) are drawn, one
of them is the query, the others are its relevant corpus sequences.
"""

from __future__ import annotations

import numpy as np

from neuroseqret.errors import UserError
from neuroseqret.sequences import EventSequences, IntArray

PARTS = 6  # sub-sequences of a sequence; one of them is the query
SHORTEST, LONGEST = 0.3, 0.8  # their lengths as shares of the parent's
VALIDATION = 0.1


def sub_sequence_task(corpus: EventSequences, seed: int = 0, fewest: int = 4) -> tuple[EventSequences, EventSequences]:
    """Queries (with `split`) and corpus of sub-sequences; `group` is the parent's id."""
    usable = np.flatnonzero(corpus.lengths >= fewest)
    if len(usable) < 2:
        raise UserError(f"sub-sequences need two sequences with {fewest} events or more; label the data or add some")
    rng = np.random.default_rng(seed)
    parent = np.repeat(usable, PARTS)
    lengths = corpus.lengths[parent]
    share = rng.uniform(SHORTEST, LONGEST, len(parent))
    kept = np.clip((lengths * share).astype(np.int64), 2, lengths)
    begin = (rng.random(len(parent)) * (lengths - kept + 1)).astype(np.int64)
    asking = np.arange(len(parent)) % PARTS == 0
    judged = rng.random(len(usable)) < VALIDATION
    judged[0] = False  # at least one to learn from
    split = np.where(judged, "validation", "train")
    queries = _runs(corpus, parent[asking], begin[asking], kept[asking], "query").with_column("split", split.tolist())
    return queries, _runs(corpus, parent[~asking], begin[~asking], kept[~asking], "part")


def _runs(corpus: EventSequences, parent: IntArray, begin: IntArray, kept: IntArray, name: str) -> EventSequences:
    offsets = np.concatenate([[0], np.cumsum(kept)])
    events = np.repeat(corpus.offsets[parent] + begin - offsets[:-1], kept) + np.arange(offsets[-1])
    parents = np.array(corpus.ids.to_pylist(), dtype=object)[parent]
    return EventSequences.from_arrays(
        corpus.times[events],
        corpus.marks[events],
        offsets,
        ids=[f"{name}{i}" for i in range(len(parent))],
        groups=parents.tolist(),
        mark_names=corpus.mark_names,
        time_unit=corpus.time_unit,
        validate=False,
    )
