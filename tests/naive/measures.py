"""Measures by plain loops: the definitions, one query and one candidate at a time."""

from __future__ import annotations

import math


def ranking(scores, ties):
    """Candidate numbers from best to worst: by score, equal scores by the larger tie key."""
    return sorted(range(len(scores)), key=lambda c: (-scores[c], -int(ties[c])))


def worst_order(scores, relevant):
    """Whether each place of the ranking is relevant, with every tie broken against the relevant candidates."""
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], relevant[c]))
    return [bool(relevant[c]) for c in order]


def average_precision(ranked_relevant, relevant):
    """Mean over all relevant candidates of the precision at their rank; not retrieved counts 0."""
    if not relevant:
        return math.nan
    hits, total = 0, 0.0
    for rank, is_relevant in enumerate(ranked_relevant, start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    return total / relevant


def average_precision_of_hits(ranked_relevant, cutoff):
    """Sum of the precisions at the hits in the top `cutoff`, divided by the number of those hits."""
    hits, total = 0, 0.0
    for rank, is_relevant in enumerate(ranked_relevant[:cutoff], start=1):
        if is_relevant:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def ndcg(ranked_relevant, relevant, cutoff):
    if not relevant:
        return math.nan
    gain = sum(1 / math.log2(rank + 1) for rank, r in enumerate(ranked_relevant[:cutoff], start=1) if r)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, cutoff) + 1))
    return gain / ideal


def reciprocal_rank(ranked_relevant):
    for rank, is_relevant in enumerate(ranked_relevant, start=1):
        if is_relevant:
            return 1 / rank
    return math.nan
