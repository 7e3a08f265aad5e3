"""Slow, obvious references of the training room."""

from __future__ import annotations

import math


def in_batch_softmax(scores, positive, temperature, ignore=None):
    total, queries = 0.0, 0
    for q in range(len(scores)):
        taking_part = [c for c in range(len(scores[q])) if ignore is None or not ignore[q][c]]
        relevant = [c for c in taking_part if positive[q][c]]
        if not relevant:
            continue
        queries += 1
        denominator = sum(math.exp(scores[q][c] / temperature) for c in taking_part)
        total += sum(-math.log(math.exp(scores[q][c] / temperature) / denominator) for c in relevant) / len(relevant)
    return total / max(queries, 1)


def pairwise_hinge(scores, positive, margin, over="active"):
    violations = []
    for q in range(len(scores)):
        for plus in range(len(scores[q])):
            for minus in range(len(scores[q])):
                if positive[q][plus] and not positive[q][minus]:
                    violations.append(scores[q][minus] - scores[q][plus] + margin)
    active = [v for v in violations if v > 0]
    return sum(active) / max(len(active if over == "active" else violations), 1)
