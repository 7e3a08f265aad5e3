"""A melody: onsets and pitches of its notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

#: Semitones above C of the seven letters.
SEMITONES = {"C": 0, "D": 2, "E": 4, "F": 5, "G": 7, "A": 9, "B": 11}


@dataclass
class Melody:
    """The notes of one voice: onsets in quarter lengths, ascending, and MIDI pitches (60 is middle C).

    Rests and grace notes are left out, tied notes are one note, the highest note of a chord counts, and repeats are not
    played. `fields` are what the file says about the piece, such as its title.
    """

    fields: Mapping[str, str]
    voice: str = ""
    onsets: list[Fraction] = field(default_factory=list)
    pitches: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.onsets)

    def add(self, onset: Fraction, pitch: int) -> None:
        self.onsets.append(onset)
        self.pitches.append(pitch)
