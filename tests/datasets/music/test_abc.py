"""ABC notation: by hand on small tunes, and against music21's parser on real ones."""

from __future__ import annotations

import random
import re

import pytest

from naive.music import by_music21, by_us
from neuroseqret.datasets.music import repertoires
from neuroseqret.datasets.music.abc import key_signature, parse_tune


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
