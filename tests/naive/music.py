"""The notes of a melody as music21's own parser finds them, and as ours does."""

from __future__ import annotations

from typing import Any

from neuroseqret.datasets.music.notes import Melody


def by_music21(part: Any) -> list[tuple[float, int]]:
    """(onset, highest pitch) of the notes that music21 finds, ties joined, grace notes left out."""
    found: dict[float, int] = {}
    for element in part.stripTies().flatten().notes:
        if not element.duration.isGrace and element.pitches:
            onset = round(float(element.offset), 4)
            found[onset] = max(found.get(onset, 0), *(p.midi for p in element.pitches))
    return sorted(found.items())


def by_us(melody: Melody) -> list[tuple[float, int]]:
    """(onset, pitch) of the notes that we find."""
    return [(round(float(t), 4), p) for t, p in zip(melody.onsets, melody.pitches, strict=True)]
