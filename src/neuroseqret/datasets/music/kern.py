"""Melodies from Humdrum `**kern` files (`.krn`): one column per voice, one line per moment.

A token is a duration (`4` is a quarter, `0` a breve, with dots), a pitch (`c` is middle C, `cc` an octave higher, `C`
an octave lower, with `#` and `-`) and signs. Accidentals are always written. `[`, `_` and `]` are ties, `q` marks grace
notes, `r` rests. If a column splits (`*^`), its first part is the voice.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from neuroseqret.datasets.music.notes import SEMITONES, Melody

DURATION = re.compile(r"(\d+)(?:%(\d+))?(\.*)")
PITCH = re.compile(r"([a-gA-G])\1*([#-]*)")


def read_kern(path: Path) -> list[Melody]:
    """Read the voices of a file."""
    fields: dict[str, str] = {}
    melodies: list[Melody] = []
    columns: list[int] = []  # the voice of each column, -1 if it has none
    clocks: list[Fraction] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("!!"):
            if match := re.match(r"!!!(\w+)[^:]*:\s*(.*)", line):
                fields.setdefault(match[1], match[2].strip())
            continue
        tokens = line.split("\t")
        if line.startswith("**"):
            for token in tokens:
                columns.append(len(melodies) if token == "**kern" else -1)
                if token == "**kern":
                    melodies.append(Melody(fields, str(len(melodies) + 1)))
                    clocks.append(Fraction(0))
        elif line.startswith("!"):
            for voice, token in zip(columns, tokens, strict=False):
                if voice >= 0 and len(token) > 1 and not len(melodies[voice]) and melodies[voice].voice.isdigit():
                    melodies[voice].voice = token[1:]
        elif line.startswith("*"):
            columns = _paths(columns, tokens)
        elif not line.startswith("=") and line:
            for voice, token in zip(columns, tokens, strict=False):
                if voice >= 0 and token not in (".", ""):
                    clocks[voice] += _add(melodies[voice], clocks[voice], token)
    return [melody for melody in melodies if len(melody)]


def _add(melody: Melody, clock: Fraction, token: str) -> Fraction:
    """Add the note of the token, if it begins one; return its length in quarters."""
    if "q" in token or "Q" in token:
        return Fraction(0)
    notes = token.split(" ")
    length = max(map(_length, notes))
    begun = [pitch for note in notes if "]" not in note and "_" not in note and (pitch := _pitch(note)) is not None]
    if begun:
        melody.add(clock, max(begun))
    return length


def _length(note: str) -> Fraction:
    match = DURATION.search(note)
    if not match:
        return Fraction(0)
    digits = match[1]
    # 0 is a breve (two whole notes), 00 twice that.
    whole = Fraction(2 ** len(digits)) if set(digits) == {"0"} else Fraction(int(match[2] or 1), int(digits))
    return 4 * whole * (2 - Fraction(1, 2 ** len(match[3])))


def _pitch(note: str) -> int | None:
    match = PITCH.search(note)
    if not match or "r" in note:
        return None
    letters = match[0].rstrip("#-")
    octave = 4 + len(letters) if letters[0].islower() else 5 - len(letters)
    return 12 * octave + SEMITONES[letters[0].upper()] + _alter(match[2])


def _alter(signs: str) -> int:
    return signs.count("#") - signs.count("-")


def _paths(columns: list[int], tokens: list[str]) -> list[int]:
    """Return the columns after a line with split (`*^`), join (`*v`), end (`*-`), add (`*+`) or swap (`*x`)."""
    after: list[int] = []
    swapped: int | None = None
    joining = False
    for voice, token in zip(columns, tokens, strict=False):
        if token == "*^":
            after += [voice, -1]
        elif token == "*v":
            if joining:
                after[-1] = max(after[-1], voice)
            else:
                after.append(voice)
        elif token == "*x":
            after.append(voice)
            if swapped is not None:
                after[-1], after[swapped] = after[swapped], after[-1]
            swapped = len(after) - 1 if swapped is None else None
        elif token == "*+":
            after += [voice, -1]
        elif token != "*-":
            after.append(voice)
        joining = token == "*v"
    return after
