"""Slow, obvious references of the data set routines."""

from __future__ import annotations


def windows(length: int, events: int, rest: str, min_events: int = 1, most: int | None = None) -> list[tuple[int, int]]:
    """First and one-past-last event of every window of a recording."""
    found = []
    if rest in ("drop", "keep"):
        begin = 0
        while begin + events <= length:
            found.append((begin, begin + events))
            begin += events
        if rest == "keep" and length - begin >= min_events and length > begin:
            found.append((begin, length))
    else:
        number = length // events if rest == "spread" else -(-length // events)
        if rest == "shrink" and length < min_events:
            number = 0
        for k in range(number):
            # Half to even, as the fast version rounds.
            found.append((round(k * (length / number)), round((k + 1) * (length / number))))
    return found if most is None else found[:most]


def steps(values: list[float], absolute: float, relative: float) -> list[tuple[int, float]]:
    """Row and level before it of every reading that moved far enough from the last event's level."""
    found = []
    level = values[0] if values else 0.0
    for row, value in enumerate(values):
        if abs(value - level) > absolute and abs(value - level) > relative * abs(level):
            found.append((row, level))
            level = value
    return found


def variants(reviews: list[tuple[int, int, int]], share: float) -> set[int]:
    """Items (item, user, day) that share so much of their reviews with a larger item."""
    occasions: dict[int, set[tuple[int, int]]] = {}
    for item, user, day in reviews:
        occasions.setdefault(item, set()).add((user, day))
    found = set()
    for small, mine in occasions.items():
        for large, theirs in occasions.items():
            is_larger = large != small and (len(theirs), -large) > (len(mine), -small)
            if is_larger and mine & theirs and len(mine & theirs) >= share * len(mine):
                found.add(small)
    return found
