"""Humdrum files: by hand on a small piece, and against music21's parser on a mass."""

from __future__ import annotations

from naive.music import by_music21, by_us
from neuroseqret.datasets.music import repertoires
from neuroseqret.datasets.music.kern import read_kern


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


def test_a_mass_agrees_with_music21(converter):
    path = repertoires.corpus_folder() / "palestrina" / "Agnus_01.krn"
    parts = list(converter.parse(path, forceSource=True).parts)
    for melody, part in zip(read_kern(path), parts[::-1], strict=True):  # the lowest voice comes first in the file
        assert by_us(melody) == by_music21(part)
