"""Evaluation by plain loops: the definitions, one query and one candidate at a time."""

from __future__ import annotations

import itertools
import math


def ranking(scores, ties):
    """Candidate numbers from best to worst: by score, equal scores by the larger tie key."""
    return sorted(range(len(scores)), key=lambda c: (-scores[c], -int(ties[c])))


def average_precision(ranked_relevant, relevant):
    """Mean over all relevant candidates of the precision at their rank; not retrieved counts 0."""
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
    gain = sum(1 / math.log2(rank + 1) for rank, r in enumerate(ranked_relevant[:cutoff], start=1) if r)
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(relevant, cutoff) + 1))
    return gain / ideal


def reciprocal_rank(ranked_relevant):
    for rank, is_relevant in enumerate(ranked_relevant, start=1):
        if is_relevant:
            return 1 / rank
    return 0.0


def exact_randomisation_p(first, second):
    """All 2^n labellings of the n queries, none drawn."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    observed = abs(sum(differences))
    count = 0
    for signs in itertools.product((1, -1), repeat=len(differences)):
        count += abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= observed - 1e-12
    return count / 2 ** len(differences)


def holm(p_values):
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, largest = [0.0] * len(p_values), 0.0
    for step, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - step) * p_values[i]))
        corrected[i] = largest
    return corrected
