"""Slow, obvious references of the data model's fast routines: loops over sequences and events."""

from __future__ import annotations

import math
from typing import Any

from neuroseqret.data.sequences import EventSequences

Window = tuple[str, int, list[float], list[int], float, float]


def windows_by_count(batch: EventSequences, size: int, step: int, min_events: int = 1) -> list[Window]:
    """(parent, offset, times, marks, start, end) of every window of `size` events."""
    found = []
    for sequence in batch:
        begin = 0
        while begin < len(sequence):
            times = sequence.times[begin : begin + size].tolist()
            marks = sequence.marks[begin : begin + size].tolist()
            if len(times) >= min_events:
                found.append((sequence.id, begin, times, marks, times[0], times[-1]))
            if begin + size >= len(sequence):
                break  # the window reaches the end: later ones would add nothing
            begin += step
    return found


def windows_by_duration(batch: EventSequences, size: float, step: float, min_events: int = 1) -> list[Window]:
    """The same for windows [s + k step, s + k step + size) that each look at every event."""
    found: list[Window] = []
    for sequence in batch:
        if not len(sequence):
            continue
        start = sequence.times[0] if sequence.start is None else sequence.start
        end = sequence.times[-1] if sequence.end is None else sequence.end
        rank, previous = 0, None
        while True:
            low = start + rank * step
            high = start + (rank + 1) * step if size == step else start + (rank * step + size)
            inside = [i for i, t in enumerate(sequence.times) if low <= t < high]
            if len(inside) >= min_events and inside != previous:
                times, marks = sequence.times[inside].tolist(), sequence.marks[inside].tolist()
                found.append((sequence.id, inside[0], times, marks, low, min(high, end)))
            previous = inside
            if high > sequence.times[-1]:
                break
            rank += 1
    return found


def padded(batch: EventSequences, rows: list[int]) -> dict[str, list[Any]]:
    """Right-padded times since the start, marks, gaps and mask, cell by cell."""
    longest = max((len(batch[row]) for row in rows), default=0)
    out: dict[str, list[Any]] = {"times": [], "marks": [], "gaps": [], "mask": [], "lengths": [], "spans": []}
    for row in rows:
        sequence = batch[row]
        start = sequence.start if sequence.start is not None else (sequence.times[0] if len(sequence) else 0.0)
        end = sequence.end if sequence.end is not None else (sequence.times[-1] if len(sequence) else 0.0)
        times, marks, gaps, mask, before = [], [], [], [], 0.0
        for place in range(longest):
            if place < len(sequence):
                times.append(sequence.times[place] - start)
                marks.append(int(sequence.marks[place]))
                gaps.append(times[-1] - before)
                mask.append(True)
                before = times[-1]
            else:
                times.append(0.0)
                marks.append(0)
                gaps.append(0.0)
                mask.append(False)
        for name, value in (("times", times), ("marks", marks), ("gaps", gaps), ("mask", mask)):
            out[name].append(value)
        out["lengths"].append(len(sequence))
        out["spans"].append(end - start if len(sequence) else 0.0)
    return out


def flaws(batch: EventSequences) -> dict[str, int]:
    """Number of flaws of each kind, by looking at every event and every row."""
    found: dict[str, int] = {}

    def note(kind: str) -> None:
        found[kind] = found.get(kind, 0) + 1

    seen: set[str] = set()
    only_empty = all(mark >= -1 for sequence in batch for mark in sequence.marks)
    for sequence in batch:
        times, marks = sequence.times.tolist(), sequence.marks.tolist()
        for place, (time, mark) in enumerate(zip(times, marks, strict=True)):
            if not math.isfinite(time):
                note("time not finite")
            if place and time < times[place - 1]:
                note("time decreases")
            if mark < 0:
                note("empty mark" if only_empty and batch.mark_names is not None else "negative mark")
            if batch.mark_names is not None and mark >= len(batch.mark_names):
                note("mark out of range")
        if not times:
            note("empty sequence")
        if not sequence.id:
            note("missing id")
        elif sequence.id in seen:
            note("duplicate id")
        seen.add(sequence.id)
        if times and sequence.start is not None and (not math.isfinite(sequence.start) or sequence.start > times[0]):
            note("window starts late")
        if times and sequence.end is not None and (not math.isfinite(sequence.end) or sequence.end < times[-1]):
            note("window ends early")
    return found
