"""Significance by plain loops: every labelling of the queries, one p-value at a time."""

from __future__ import annotations

import itertools


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
