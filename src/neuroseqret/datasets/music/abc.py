"""Melodies from ABC notation (`.abc`), the text format of folk tunes; see the ABC standard 2.1.

Understood are the header fields T, M, L, K, R, the same fields within the tune, voices (V), notes with accidentals
(valid to the end of the bar, in all octaves), octave marks, lengths, broken rhythm, tuplets, ties and chords. Grace
notes, decorations, chord names, lyrics and repeats are skipped.
"""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

from neuroseqret.datasets.music.notes import SEMITONES, Melody

TOKEN = re.compile(
    r"""
      (?P<skip>  "[^"]*" | ![^!\s|]*! | \+[a-z]+\+ | \{[^}]*\} | \[[1-9][0-9,.-]*(?![\w']) )
    | (?P<field> \[[A-Za-z]:[^\]]*\] )
    | (?P<bar>   [|:\[\]]*[|][|:\]]* | ::+ | :\| )
    | (?P<tuple> \( [2-9] (?: :[0-9]* ){0,2} )
    | (?P<chord> \[ (?: [_^=]* [A-Ga-g] [,']* [0-9/]* [-\s]* | "[^"]*" | [().~uvTHLMPSOJRK] )+ \] )
    | (?P<note>  (?P<accidental> \^{1,2} | _{1,2} | = )? (?P<letter> [A-Ga-g] ) (?P<octave> [,']* ) )
    | (?P<rest>  [zxZ] )
    | (?P<broken> >+ | <+ )
    | (?P<tie>   - )
    """,
    re.VERBOSE,
)
LENGTH = re.compile(r"(\d*)(/*)(\d*)")
CHORD_NOTE = re.compile(r"""(\^{1,2}|_{1,2}|=)?([A-Ga-g])([,']*)(\d*)(/*)(\d*)""")
ACCIDENTALS = {"^": 1, "^^": 2, "_": -1, "__": -2, "=": 0}
#: Position of the tonics on the circle of fifths (C major is 0), and the shift of each mode against major.
FIFTHS = {"C": 0, "G": 1, "D": 2, "A": 3, "E": 4, "B": 5, "F": -1}
MODES = {"maj": 0, "ion": 0, "mix": -1, "dor": -2, "m": -3, "min": -3, "aeo": -3, "phr": -4, "loc": -5, "lyd": 1}
SHARPS = "FCGDAEB"


def tunes(path: Path) -> list[str]:
    """Return the text of each tune of a file, from its X field on."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return [block for block in re.split(r"(?m)^(?=X:)", text) if block.startswith("X:")]


def parse_tune(block: str) -> list[Melody]:
    """Parse the voices of one tune, given from its X field on."""
    fields: dict[str, str] = {}
    lines = block.splitlines()
    body = len(lines)
    for number, line in enumerate(lines):
        if re.match(r"[A-Za-z]:", line):
            # The first of several titles is used.
            fields.setdefault(line[0], line[2:].split("%")[0].strip())
            if line[0] == "K":
                body = number + 1
                break
    tune = _Tune(fields)
    for line in lines[body:]:
        tune.line(line)
    return [voice.melody for voice in tune.voices.values() if len(voice.melody)]


def key_signature(text: str) -> dict[str, int]:
    """Return semitones by letter for a K field such as `G`, `Bb`, `F#m`, `D Mixolydian`, `Dmix =c` or `Hp`."""
    if text.strip()[:2].upper() == "HP":
        return {"F": 1, "C": 1, "G": 0} if text.strip() == "Hp" else {}
    match = re.match(r"\s*([A-G])([#b]?)\s*([A-Za-z]*)", text)
    signature: dict[str, int] = {}
    if match:
        mode = match[3]
        shift = MODES["m"] if mode == "m" else MODES.get(mode[:3].lower(), 0)
        fifths = FIFTHS[match[1]] + {"#": 7, "b": -7, "": 0}[match[2]] + shift
        letters = SHARPS[:fifths] if fifths > 0 else SHARPS[::-1][:-fifths]
        signature = dict.fromkeys(letters, 1 if fifths > 0 else -1)
        text = text[match.end() :]
    for accidental, letter in re.findall(r"(\^{1,2}|_{1,2}|=)([A-Ga-g])(?![a-z])", text):
        signature[letter.upper()] = ACCIDENTALS[accidental]
    return signature


def _unit(meter: str) -> Fraction:
    """Return the default length in whole notes: a sixteenth if the meter is below 3/4, else an eighth."""
    match = re.match(r"\s*(\d+)/(\d+)", meter)
    return Fraction(1, 16) if match and Fraction(int(match[1]), int(match[2])) < Fraction(3, 4) else Fraction(1, 8)


def _length(number: str, slashes: str, divisor: str) -> Fraction:
    """Parse a length: `3` is 3, `/` is 1/2, `//` is 1/4, `3/2` is 3/2."""
    value = Fraction(int(number) if number else 1)
    if slashes:
        value /= int(divisor) if divisor else 2 ** len(slashes)
    return value


class _Voice:
    def __init__(self, melody: Melody) -> None:
        self.melody = melody
        self.clock = Fraction(0)
        self.last: tuple[int, Fraction] | None = None  # pitch and length of the latest note or rest
        self.tied: int | None = None
        self.broken = Fraction(1)
        self.tuplet: tuple[int, Fraction] = (0, Fraction(1))
        self.bar: dict[str, int] = {}


class _Tune:
    """The state of the parser, which reads a tune line by line."""

    def __init__(self, fields: dict[str, str]) -> None:
        self.fields = fields
        self.voices: dict[str, _Voice] = {}
        self.meter = fields.get("M", "4/4")
        length = fields.get("L", "")
        self.unit = _fraction(length) if length else _unit(self.meter)
        self.key = key_signature(fields.get("K", "C"))
        self.use("1")

    def use(self, name: str) -> None:
        if name not in self.voices:
            if list(self.voices) == ["1"] and not len(self.voices["1"].melody) and not self.voices["1"].clock:
                self.voices.pop("1")  # the tune names its voices itself
            self.voices[name] = _Voice(Melody(self.fields, name))
        self.voice = self.voices[name]

    def field(self, letter: str, value: str) -> None:
        value = value.split("%")[0].strip()
        if letter == "K":
            self.key = key_signature(value)
        elif letter == "L":
            self.unit = _fraction(value)
        elif letter == "M":
            self.meter = value
        elif letter == "V" and value:
            self.use(value.split()[0])

    def line(self, line: str) -> None:
        if re.match(r"[A-Za-z]:(?![|:])", line):
            self.field(line[0], line[2:])
            return
        line = re.sub(r"(?<!\\)%.*", "", line)
        position = 0
        while match := TOKEN.search(line, position):
            position = match.end()
            kind = match.lastgroup if match.lastgroup not in ("accidental", "letter", "octave") else "note"
            token = match[0]
            if kind == "note":
                pitch = self.pitch(match["accidental"], match["letter"], match["octave"])
                position = self.sound(pitch, line, position)
            elif kind == "chord":
                notes = CHORD_NOTE.findall(token)
                pitch = max(self.pitch(a, letter, octave) for a, letter, octave, *_ in notes)
                position = self.sound(pitch, line, position, _length(*notes[0][3:]))
            elif kind == "rest":
                position = self.sound(None, line, position, bars=token == "Z")
            elif kind == "bar":
                self.voice.bar = {}
            elif kind == "broken":
                self.break_rhythm(token)
            elif kind == "tuple":
                self.start_tuplet(token)
            elif kind == "tie":
                self.voice.tied = self.voice.last[0] if self.voice.last else None
            elif kind == "field":
                self.field(token[1], token[3:-1])

    def pitch(self, accidental: str | None, letter: str, octave: str) -> int:
        name, bar = letter.upper(), self.voice.bar
        if accidental:
            bar[name] = ACCIDENTALS[accidental]
        shift = bar.get(name, self.key.get(name, 0))
        octaves = 5 + letter.islower() + octave.count("'") - octave.count(",")
        return 12 * octaves + SEMITONES[name] + shift

    def sound(
        self, pitch: int | None, line: str, position: int, inner: Fraction = Fraction(1), bars: bool = False
    ) -> int:
        """Add a note or rest whose length follows in the line; return the position after it."""
        match = LENGTH.match(line, position)
        assert match is not None  # the pattern also matches the empty string
        length = inner * _length(match[1], match[2], match[3]) * (_fraction_or(self.meter) if bars else self.unit) * 4
        voice = self.voice
        length *= voice.broken
        voice.broken = Fraction(1)
        left, factor = voice.tuplet
        if left:
            length *= factor
            voice.tuplet = (left - 1, factor)
        if pitch is not None and pitch != voice.tied:
            voice.melody.add(voice.clock, pitch)
        voice.tied = None
        voice.last = (pitch if pitch is not None else -1, length)
        voice.clock += length
        return match.end()

    def break_rhythm(self, token: str) -> None:
        """Apply `a>b`: a is lengthened by half and b shortened by half; `>>` by three quarters, and so on."""
        if self.voice.last is None:
            return
        taken = Fraction(1, 2 ** len(token))
        first, second = (2 - taken, taken) if token[0] == ">" else (taken, 2 - taken)
        pitch, length = self.voice.last
        self.voice.clock += length * (first - 1)
        self.voice.last = (pitch, length * first)
        self.voice.broken = second

    def start_tuplet(self, token: str) -> None:
        """Start `(p:q:r`: p notes in the time of q, for the next r notes."""
        p, q, r = ([int(part) if part else 0 for part in token[1:].split(":")] + [0, 0])[:3]
        compound = re.match(r"\s*(6|9|12)/8", self.meter) is not None
        default = {2: 3, 3: 2, 4: 3, 6: 2, 8: 3}.get(p, 3 if compound else 2)
        self.voice.tuplet = (r or p, Fraction(q or default, p))


def _fraction(text: str) -> Fraction:
    match = re.match(r"\s*(\d+)\s*(?:/\s*(\d+))?", text)
    return Fraction(int(match[1]), int(match[2] or 1)) if match and int(match[2] or 1) else Fraction(1, 8)


def _fraction_or(meter: str) -> Fraction:
    return _fraction(meter) if meter[:1].isdigit() else Fraction(1)
