"""Figures of the paper, to read beside ours; its data, negatives and machine were different."""

from __future__ import annotations

SETS = ("audio", "celebrity", "electricity", "health", "sports", "twitter", "amazon")

#: MAP in points with all relevant and 1000 other sequences ranked (the paper's first table of results).
MAP: dict[str, tuple[float, ...]] = {
    "Rank-THP": (54.3, 63.1, 29.4, 33.6, 56.3, 59.1, 58.2),
    "SelfAttn": (55.8, 64.4, 30.7, 35.9, 57.6, 56.9, 59.4),
    "CrossAttn": (56.2, 65.1, 32.4, 37.4, 58.7, 58.4, 61.3),
    "Hash-CrossAttn": (56.8, 65.2, 32.1, 37.8, 58.2, 58.6, 61.7),
}

#: Hours of training on a GPU, upper bounds.
HOURS: dict[str, tuple[float, ...]] = {
    "CrossAttn": (3, 5, 6, 6, 2, 3, 3),
    "Hash-CrossAttn": (4, 5, 6, 6, 3, 3, 3),
}


def value(table: dict[str, tuple[float, ...]], row: str, data: str) -> float:
    """Return a number of one of the tables; NaN for a data set that is not in the paper."""
    return table[row][SETS.index(data)] if data in SETS else float("nan")
