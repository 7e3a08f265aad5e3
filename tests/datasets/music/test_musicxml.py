"""MusicXML and its zipped form, by hand on a small piece."""

from __future__ import annotations

import zipfile
from fractions import Fraction

import pytest

from naive.music import by_music21, by_us
from neuroseqret.datasets.music import repertoires
from neuroseqret.datasets.music.musicxml import read_musicxml
from neuroseqret.errors import DataError

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


@pytest.mark.parametrize(("files", "which"), [("bach/bwv66.6.mxl", 0), ("trecento/*.xml", 3)])
def test_scores_agree_with_music21(converter, files, which):
    path = sorted(repertoires.corpus_folder().glob(files))[which]
    for melody, part in zip(read_musicxml(path), converter.parse(path, forceSource=True).parts, strict=True):
        assert by_us(melody) == by_music21(part)
