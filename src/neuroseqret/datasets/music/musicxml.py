"""Melodies from MusicXML (`.xml`, `.musicxml`) and its zipped form (`.mxl`): one melody per part and voice."""

from __future__ import annotations

import zipfile
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree

from neuroseqret.datasets.music.notes import SEMITONES, Melody
from neuroseqret.errors import DataError


def read_musicxml(path: Path) -> list[Melody]:
    """Read the voices of a score, part by part."""
    try:
        root = ElementTree.fromstring(_content(path))
    except (ElementTree.ParseError, zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"not MusicXML ({error})", file=path, remedy="install music21 again") from error
    fields = {"T": root.findtext("work/work-title") or root.findtext("movement-title") or ""}
    names = {part.get("id", ""): part.findtext("part-name") or "" for part in root.iter("score-part")}
    voices: list[Melody] = []
    for part in root.iter("part"):
        voices += _part(part, fields, names.get(part.get("id", ""), ""))
    return [melody for melody in voices if len(melody)]


def _content(path: Path) -> bytes:
    if path.suffix != ".mxl":
        return path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
        file = next(e for e in container.iter() if e.tag.endswith("rootfile"))
        return archive.read(file.attrib["full-path"])


class _Voice:
    """A melody, and its last note at each pitch: where it ends, and whether a tie starts from it."""

    def __init__(self, melody: Melody) -> None:
        self.melody = melody
        self.sounding: dict[int, tuple[Fraction, bool]] = {}

    def note(self, pitch: int, onset: Fraction, length: Fraction, in_chord: bool, ties: set[str | None]) -> None:
        # Some files mark only the beginning of a tie, some only its end.
        end, asks = self.sounding.get(pitch, (None, False))
        held = end == onset and (asks or "stop" in ties)
        self.sounding[pitch] = (onset + length, "start" in ties)
        if held:
            return
        melody = self.melody
        if in_chord and melody.onsets and melody.onsets[-1] == onset:
            melody.pitches[-1] = max(melody.pitches[-1], pitch)
        else:
            melody.add(onset, pitch)


def _part(part: ElementTree.Element, fields: dict[str, str], name: str) -> list[Melody]:
    voices: dict[str, _Voice] = {}
    divisions = Fraction(1)
    begin = Fraction(0)
    for measure in part.iter("measure"):
        clock = furthest = begin
        onset = begin
        for element in measure:
            if element.tag == "attributes":
                if given := element.findtext("divisions"):
                    divisions = Fraction(given)
            elif element.tag in ("backup", "forward"):
                length = Fraction(element.findtext("duration") or 0) / divisions
                clock += length if element.tag == "forward" else -length
            elif element.tag == "note" and element.find("grace") is None:
                length = Fraction(element.findtext("duration") or 0) / divisions
                in_chord = element.find("chord") is not None
                if not in_chord:
                    onset = clock
                    clock += length
                if (height := _pitch(element)) is not None:
                    voice = element.findtext("voice") or "1"
                    if voice not in voices:
                        voices[voice] = _Voice(Melody(fields, name if voice == "1" else f"{name} {voice}"))
                    ties = {tie.get("type") for tie in element.iter("tie")}
                    voices[voice].note(height, onset, length, in_chord, ties)
            furthest = max(furthest, clock)
        begin = furthest
    return [voice.melody for voice in voices.values()]


def _pitch(element: ElementTree.Element) -> int | None:
    pitch = element.find("pitch")
    if pitch is None:
        return None
    octave, alter = int(pitch.findtext("octave") or 4), float(pitch.findtext("alter") or 0)
    return 12 * (octave + 1) + SEMITONES[pitch.findtext("step") or "C"] + round(alter)
