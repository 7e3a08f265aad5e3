"""A task made from an unlabelled corpus: sub-sequences of the same sequence are relevant to each other.

This is the paper's heuristic for data without labels. Some sub-sequences (runs of events) are drawn from each sequence;
one of them is the query, the others are its relevant corpus sequences.
"""

from __future__ import annotations

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.windows import take_runs
from neuroseqret.errors import UserError

PARTS = 6  # sub-sequences per sequence; one of them is the query
SHORTEST, LONGEST = 0.3, 0.8  # their lengths as shares of the length of the sequence
VALIDATION = 0.1  # share of the queries used for validation
WITHOUT_LABELS = (
    "no queries with groups or qrels, so learning from sub-sequences of the corpus: parts of the same sequence count "
    "as relevant to each other; to learn from the groups of a file, make a data folder with 'neuroseqret data prepare'"
)


def sub_sequence_task(corpus: EventSequences, seed: int = 0, fewest: int = 4) -> tuple[EventSequences, EventSequences]:
    """Return queries (with `split`) and corpus made of sub-sequences; `group` is the id of the original sequence."""
    usable = np.flatnonzero(corpus.lengths >= fewest)
    if len(usable) < 2:
        raise UserError(
            f"learning from sub-sequences needs at least two sequences with {fewest} events or more; add sequences, or "
            "label the data"
        )
    rng = np.random.default_rng(seed)
    parent = np.repeat(usable, PARTS)
    lengths = corpus.lengths[parent]
    share = rng.uniform(SHORTEST, LONGEST, len(parent))
    kept = np.clip((lengths * share).astype(np.int64), 2, lengths)
    begin = (rng.random(len(parent)) * (lengths - kept + 1)).astype(np.int64)
    pieces = take_runs(corpus, parent, begin, begin + kept)
    pieces = pieces.with_column("group", pieces.column("parent"))
    asking = np.arange(len(parent)) % PARTS == 0
    judged = rng.random(len(usable)) < VALIDATION
    judged[0] = False  # keep at least one query to learn from
    split = np.where(judged, "validation", "train").tolist()
    return pieces[asking].with_column("split", split), pieces[~asking]
