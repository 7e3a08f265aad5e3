"""Repertoires: melodies of fifteen kinds of music, retrieval of the same kind; the data of the demo.

The scores are part of the installed `music21` package (extra `demo`), read in place and never copied: masses of
Palestrina (`**kern`), chorales of Bach, madrigals of Monteverdi and Trecento songs (MusicXML; one sequence per voice),
folk songs of the Essen collection, and dance tunes of Ryan's Mammoth Collection, O'Neill's 1850 and Aird's Airs (ABC).
Their licences differ by collection and are stated in the package.

Every note from the second on is an event, at its onset. Its mark is the melodic interval from the note before in
semitones, from an octave or more down to an octave or more up (25 marks). Whether a tune is written in quarters or
sixteenths is a habit of its editor, so onsets are divided by the median gap of the piece: one unit of time is its usual
note. There are at most 200 melodies per group, of 30 notes or more. Queries come from other pieces than the corpus.

The column `pitch` keeps the MIDI number of every note, so that a melody can be drawn and played. No model reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets.music.abc import parse_tune, tunes
from neuroseqret.datasets.music.kern import read_kern
from neuroseqret.datasets.music.musicxml import read_musicxml
from neuroseqret.datasets.music.notes import Melody
from neuroseqret.datasets.prepare import prepare_sequences
from neuroseqret.datasets.raw_files import Progress, track
from neuroseqret.datasets.recordings import Recordings
from neuroseqret.errors import MissingExtraError, UserError
from neuroseqret.readers.data_folder import DataFolder, read_folder
from neuroseqret.storage.files import cache_folder

VERSION = 3  # of the recipe; folders of other versions in the cache are not used
WIDEST = 12
QUERY_SHARE = 0.25
MARKS = [
    *(f"falls by {n} or more" if n == WIDEST else f"falls by {n}" for n in range(WIDEST, 0, -1)),
    "repeats",
    *(f"rises by {n} or more" if n == WIDEST else f"rises by {n}" for n in range(1, WIDEST + 1)),
]


@dataclass(frozen=True)
class Group:
    """Where the pieces of a group are: folders of the corpus, file names, and for tunes the value of the R field."""

    folder: tuple[str, ...]
    files: str
    rhythm: str | None = None


GROUPS = {
    "Palestrina masses": Group(("palestrina",), r".*\.krn"),
    "Bach chorales": Group(("bach",), r"bwv(?!846)\d+(\.\d+)?\.mxl"),
    "Monteverdi madrigals": Group(("monteverdi",), r".*\.mxl"),
    "Trecento songs": Group(("trecento",), r".*\.(xml|mxl)"),
    "Chinese songs": Group(("essenFolksong",), r"han\d\.abc"),
    "German songs": Group(("essenFolksong",), r"(erk|boehme|altdeu|ballad)\d+\.abc"),
    "Luxembourg songs": Group(("essenFolksong",), r"lux\.abc"),
    "children's songs": Group(("essenFolksong",), r"kinder0\.abc"),
    "Irish songs": Group(("essenFolksong",), r"irl\.abc"),
    "reels": Group(("ryansMammoth", "oneills1850"), r".*\.abc", r"reel"),
    "jigs": Group(("ryansMammoth", "oneills1850"), r".*\.abc", r"(double )?jig"),
    "hornpipes": Group(("ryansMammoth", "oneills1850"), r".*\.abc", r"hornpipe"),
    "slip jigs": Group(("ryansMammoth", "oneills1850"), r".*\.abc", r"slip ?jig"),
    "strathspeys": Group(("ryansMammoth", "oneills1850"), r".*\.abc", r"strathspey"),
    "Scottish airs": Group(("airdsAirs",), r"book\d\.abc"),
}


def corpus_folder() -> Path:
    """Return the folder of scores in the installed `music21` package, without importing it (which takes seconds)."""
    spec = find_spec("music21")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("music21", "demo", "the demo's music")
    return Path(next(iter(spec.submodule_search_locations))) / "corpus"


def load(most: int = 200, *, seed: int = 0, progress: Progress | None = None) -> DataFolder:
    """Return the data folder with at most `most` melodies per group, from the cache or made now."""
    folder = cache_folder() / f"repertoires-{VERSION}-{most}-{seed}"
    try:
        return read_folder(folder)
    except UserError:  # not there, or damaged
        return build(folder, most, seed=seed, progress=progress)


def build(
    out: Path, most: int = 200, *, min_notes: int = 30, seed: int = 0, progress: Progress | None = None
) -> DataFolder:
    """Read the scores and write the data folder."""
    melodies = read(most, min_notes=min_notes, seed=seed, progress=progress)
    meta = {
        "name": "repertoires",
        "title": "Melodies of fifteen kinds of music, retrieval of the same kind",
        "licence": "differs by collection; see the music21 package",
        "group_meaning": "kind of music",
        "how": " ".join((__doc__ or "").split()),
    }
    return prepare_sequences(melodies, out, query_share=QUERY_SHARE, seed=seed, meta=meta, anonymous=True)


def read(most: int = 200, *, min_notes: int = 30, seed: int = 0, progress: Progress | None = None) -> EventSequences:
    """Read all melodies with `group`, `source` (the piece), `title`, `voice` and one `pitch` per event."""
    corpus = corpus_folder()
    parts: list[tuple[Any, Any, dict[str, Any]]] = []
    for name, group in track(GROUPS.items(), progress):
        rng = np.random.default_rng([seed, list(GROUPS).index(name)])
        taken: list[tuple[Any, Any, dict[str, Any]]] = []
        for source, melodies in _pieces(corpus, group, rng):
            events = [(melody, *_events(melody)) for melody in melodies if len(melody) >= min_notes]
            for melody, times, marks in events[: most - len(taken)]:
                columns: dict[str, Any] = {
                    "group": name,
                    "source": source,
                    "title": _title(melody, source),
                    "voice": melody.voice,
                }
                columns |= {"pitch": melody.pitches[1:]}
                taken.append((times, marks, columns))
            if len(taken) >= most:
                break
        parts += taken
    return Recordings.from_parts(parts).to_sequences(MARKS, "beats")


def _events(melody: Melody) -> tuple[np.ndarray, np.ndarray]:
    """Return onsets from the second note on, in median gaps and from 0, and intervals as marks."""
    onsets = np.array([float(t) for t in melody.onsets])
    gaps = np.diff(onsets)
    unit = np.median(gaps[gaps > 0]) if (gaps > 0).any() else 1.0
    interval = np.clip(np.diff(melody.pitches), -WIDEST, WIDEST) + WIDEST
    return (onsets[1:] - onsets[1]) / unit, interval


def _pieces(corpus: Path, group: Group, rng: np.random.Generator) -> Iterator[tuple[str, list[Melody]]]:
    """Yield the pieces of a group in random order as (source, voices)."""
    paths = sorted(p for f in group.folder for p in (corpus / f).iterdir() if re.fullmatch(group.files, p.name))
    if not paths or paths[0].suffix != ".abc":
        for row in rng.permutation(len(paths)):
            path = paths[row]
            melodies = read_kern(path) if path.suffix == ".krn" else read_musicxml(path)
            # All movements of a mass are one source.
            mass = melodies[0].fields.get("OPR") if melodies else None
            yield mass or f"{path.parent.name}/{path.stem}", melodies
        return
    chosen = [(path, block) for path in paths for block in tunes(path) if _is_rhythm(block, group.rhythm)]
    for row in rng.permutation(len(chosen)):
        path, block = chosen[row]
        melodies = parse_tune(block)
        # Settings of one tune in two collections have the same title; they must be one source.
        title = melodies[0].fields.get("T", "") if melodies else ""
        yield _plain(title) or f"{path.name}:{row}", melodies


def _is_rhythm(block: str, rhythm: str | None) -> bool:
    if rhythm is None:
        return True
    field = re.search(r"(?m)^R:(.*)$", block)
    return bool(field and re.fullmatch(rhythm, field[1].strip(), re.IGNORECASE))


def _plain(title: str) -> str:
    """Return a title without articles, punctuation and the name of the dance."""
    words = re.sub(r"[^\w\s]", "", title.lower()).split()
    dances = {"the", "a", "reel", "jig", "hornpipe", "strathspey", "slip", "clog"}
    return " ".join(word for word in words if word not in dances)


def _title(melody: Melody, source: str) -> str:
    """Return a readable title from what the file says."""
    fields = melody.fields
    title = fields.get("T") or " ".join(filter(None, [fields.get("OPR"), fields.get("OTL")]))
    folder, _, file = source.partition("/")
    if folder == "bach":
        title = file.replace("bwv", "BWV ")
    elif folder == "monteverdi":
        title = file.replace("madrigal.", "Madrigals ")
    elif not title:
        title = re.sub(r"^PMFC_[\d_]+-", "", file).replace("_", " ")
    if re.search("[\x80-\x9f]", title):  # umlauts in code page 437
        title = title.encode("latin-1", errors="replace").decode("cp437")
    title = re.sub(r"\s*(--\s*(reel|(slip )?jig|hornpipe|strathspey|clog)|,? S\. ?\d+\w*)\s*$", "", title, flags=re.I)
    title = title.capitalize() if title.isupper() and folder != "bach" else title
    title = " ".join(title.split()).strip(" .,")
    return title if melody.voice.isdigit() or not melody.voice else f"{title}, {melody.voice}"
