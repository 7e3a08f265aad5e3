"""The readers of scores: by hand on small pieces, and against music21's own parser on real ones."""

from __future__ import annotations

import random
import re
import zipfile
from fractions import Fraction

import pytest

from neuroseqret.datasets.music import repertoires
from neuroseqret.datasets.music.abc import key_signature, parse_tune
from neuroseqret.datasets.music.kern import read_kern
from neuroseqret.datasets.music.musicxml import read_musicxml
from neuroseqret.errors import DataError


def tune(body, key="C", meter="4/4", length="1/4"):
    (melody,) = parse_tune(f"X:1\nT:Test\nM:{meter}\nL:{length}\nK:{key}\n{body}\n")
    return [(float(t), p) for t, p in zip(melody.onsets, melody.pitches, strict=True)]


@pytest.mark.parametrize(
    ("body", "notes"),
    [
        ("C D2 z E/ F/", [(0, 60), (1, 62), (4, 64), (4.5, 65)]),
        ("c c' C, C3/2 D//", [(0, 72), (1, 84), (2, 48), (3, 60), (4.5, 62)]),
        ("^F F f|F =F", [(0, 66), (1, 66), (2, 78), (3, 65), (4, 65)]),  # to the bar's end, in all octaves
        ("C-C D", [(0, 60), (2, 62)]),
        ("C-|C D", [(0, 60), (2, 62)]),
        ("C-D", [(0, 60), (1, 62)]),  # a slur of old collections, no tie
        ("A>B c<d", [(0, 69), (1.5, 71), (2, 72), (2.5, 74)]),
        ("A>>B c", [(0, 69), (1.75, 71), (2, 72)]),
        ("(A>.B) c", [(0, 69), (1.5, 71), (2, 72)]),
        ("(3ABc d", [(0, 69), (2 / 3, 71), (4 / 3, 72), (2, 74)]),
        ("(3:2:2AB c", [(0, 69), (2 / 3, 71), (4 / 3, 72)]),
        ("{gab}A {/c}B", [(0, 69), (1, 71)]),
        ("[CEG]2 D", [(0, 67), (2, 62)]),
        ('"Am"A !trill!B ">"c Td ~e', [(0, 69), (1, 71), (2, 72), (3, 74), (4, 76)]),
        ("A|:B:|[1 c:|[2 d|]", [(0, 69), (1, 71), (2, 72), (3, 74)]),
        ("A [K:D] F [L:1/8] G2 A", [(0, 69), (1, 66), (2, 67), (3, 69)]),
        ("A % no note B\nB", [(0, 69), (1, 71)]),
        ("A\nw: some words\nB", [(0, 69), (1, 71)]),
    ],
)
def test_abc(body, notes):
    assert [(pytest.approx(t), p) for t, p in notes] == tune(body)


def test_abc_default_length_and_voices():
    short = parse_tune("X:1\nT:t\nM:2/4\nK:C\nCD\n")[0]
    assert [float(t) for t in short.onsets] == [0, 0.25]
    assert short.fields["T"] == "t"
    two = parse_tune("X:1\nM:4/4\nL:1/4\nK:C\nV:1\nCD\nV:2\nEF\nV:1\nG\n")
    assert [(m.voice, m.pitches) for m in two] == [("1", [60, 62, 67]), ("2", [64, 65])]


@pytest.mark.parametrize(
    ("key", "signature"),
    [
        ("G", {"F": 1}),
        ("Bb", {"B": -1, "E": -1}),
        ("F#m", {"F": 1, "C": 1, "G": 1}),
        ("D Mixolydian", {"F": 1}),
        ("Ador", {"F": 1}),
        ("E Minor", {"F": 1}),
        ("Dmix=c", {"F": 1, "C": 0}),
        ("C clef=bass", {}),
        ("none", {}),
    ],
)
def test_abc_keys(key, signature):
    assert key_signature(key) == signature


def test_kern(tmp_path):
    path = tmp_path / "a.krn"
    path.write_text(
        "!!!OTL: Kyrie\n**kern\t**text\t**kern\n*Itenor\t*\t*Icant\n!Tenor\t!\t!Cantus\n=1\t=1\t=1\n"
        "2c\tKy\t[4cc#\n.\t.\t8cc#]\n.\t.\t8dd-\n4.BB\trie\t0r\n*^\t*\t*\n8C\t4G\t.\t.\n*v\t*v\t*\t*\n"
        "qe\t.\t.\n4d 4f\t.\t4ee\n*-\t*-\t*-\n"
    )
    tenor, cantus = read_kern(path)
    assert (tenor.voice, cantus.voice) == ("Tenor", "Cantus")
    assert tenor.fields["OTL"] == "Kyrie"
    assert list(zip(map(float, tenor.onsets), tenor.pitches, strict=True)) == [(0, 60), (2, 47), (3.5, 48), (4, 65)]
    assert list(zip(map(float, cantus.onsets), cantus.pitches, strict=True)) == [(0, 73), (1.5, 73), (10, 76)]


NOTE = (
    "<note>{extra}<pitch><step>{step}</step>{alter}<octave>4</octave></pitch><duration>{length}</duration>{tie}</note>"
)


def note(step, length, extra="", alter="", tie=""):
    return NOTE.format(step=step, length=length, extra=extra, alter=alter, tie=tie)


def test_musicxml_and_its_zip(tmp_path):
    start, stop = '<tie type="start"/>', '<tie type="stop"/>'
    first = (
        "<attributes><divisions>2</divisions></attributes>"
        + note("C", 2)
        + note("E", 2, extra="<chord/>")
        + note("D", 1, extra="<grace/>").replace("<duration>1</duration>", "")
        + note("F", 2, alter="<alter>1</alter>", tie=start)
        + "<backup><duration>4</duration></backup>"
        + note("G", 4).replace("<note>", "<note><voice>2</voice>")
    )
    second = (
        note("F", 2, alter="<alter>1</alter>", tie=stop) + "<note><rest/><duration>2</duration></note>" + note("A", 4)
    )
    score = (
        "<score-partwise><work><work-title>A song</work-title></work><part-list><score-part id='P1'>"
        "<part-name>Alto</part-name></score-part></part-list>"
        f"<part id='P1'><measure>{first}</measure><measure>{second}</measure></part></score-partwise>"
    )
    (tmp_path / "a.xml").write_text(score)
    with zipfile.ZipFile(tmp_path / "a.mxl", "w") as archive:
        archive.writestr(
            "META-INF/container.xml", "<container><rootfiles><rootfile full-path='s.xml'/></rootfiles></container>"
        )
        archive.writestr("s.xml", score)
    for path in (tmp_path / "a.xml", tmp_path / "a.mxl"):
        alto, second_voice = read_musicxml(path)
        assert alto.onsets == [Fraction(0), Fraction(1), Fraction(4)]
        assert alto.pitches == [64, 66, 69]
        assert (second_voice.onsets, second_voice.pitches) == ([Fraction(0)], [67])
        assert (alto.voice, alto.fields["T"]) == ("Alto", "A song")
    (tmp_path / "b.xml").write_text("<score")
    with pytest.raises(DataError, match=r"b\.xml: not MusicXML"):
        read_musicxml(tmp_path / "b.xml")


# ---------------------------------------------------------------- against music21


def by_music21(part):
    """(onset, highest pitch) of the notes that music21 finds, ties joined, grace notes left out."""
    found: dict[float, int] = {}
    for element in part.stripTies().flatten().notes:
        if not element.duration.isGrace and element.pitches:
            onset = round(float(element.offset), 4)
            found[onset] = max(found.get(onset, 0), *(p.midi for p in element.pitches))
    return sorted(found.items())


def by_us(melody):
    return [(round(float(t), 4), p) for t, p in zip(melody.onsets, melody.pitches, strict=True)]


@pytest.fixture(scope="module")
def converter():
    return pytest.importorskip("music21").converter


@pytest.mark.parametrize("collection", ["essenFolksong", "oneills1850", "ryansMammoth", "airdsAirs"])
def test_tunes_agree_with_music21(converter, collection):
    blocks = [
        block
        for path in sorted((repertoires.corpus_folder() / collection).glob("*.abc"))[:30]
        for block in re.split(r"(?m)^(?=X:)", path.read_text(errors="replace"))
        # music21 loses notes at fermatas (H), accents (">"), odd header lines, and the rhythm of (a>.b) and a>{g}b
        if block.startswith("X:")
        and not re.search(r'H|">|[<>][.(u{]|\bx|[<>]"', block.split("K:", 1)[-1])
        and not re.search(r"(?m)^[A-Z] ", block)
    ]
    for block in random.Random(7).sample(blocks, 3):
        score = converter.parse("%abc-2.1\n" + block, format="abc", forceSource=True)
        assert by_us(parse_tune(block)[0]) == by_music21(score.parts[0] if len(score.parts) else score)


@pytest.mark.parametrize(
    ("file", "reversed_"),
    [("palestrina/Agnus_01.krn", True), ("bach/bwv66.6.mxl", False), ("trecento/PMFC_04_05-Sel_mie_.xml", False)],
)
def test_scores_agree_with_music21(converter, file, reversed_):
    path = repertoires.corpus_folder() / file
    if not path.exists():
        path = sorted(path.parent.glob(f"*{path.suffix}"))[3]
    melodies = read_kern(path) if path.suffix == ".krn" else read_musicxml(path)
    parts = list(converter.parse(path, forceSource=True).parts)
    for melody, part in zip(melodies, parts[::-1] if reversed_ else parts, strict=True):
        assert by_us(melody) == by_music21(part)
