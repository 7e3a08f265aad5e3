"""The melodies of the demo: made once, read from the cache afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from neuroseqret.datasets.music import repertoires
from neuroseqret.errors import MissingExtraError

pytest.importorskip("music21")


def test_a_small_set_of_all_groups_is_cached(tmp_path, monkeypatch):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path))
    made = repertoires.load(16)
    assert set(made.corpus.groups.to_pylist()) == set(repertoires.GROUPS)
    assert len(made.corpus) + len(made.queries) == 15 * 16
    assert made.corpus.num_marks == 25
    for sequence in made.queries:
        assert len(sequence) >= 29
        assert sequence.times[0] == 0
        gaps = np.diff(sequence.times)
        assert np.median(gaps[gaps > 0]) == pytest.approx(1, abs=0.51)  # the median of one gap more is 1
        assert sequence.metadata["title"]
        steps = np.diff(sequence.metadata["pitch"]).clip(-repertoires.WIDEST, repertoires.WIDEST)
        assert (sequence.marks[1:] - repertoires.WIDEST == steps).all()  # the marks are the steps of the pitches
    pairs = {(s.group, s.metadata["source"]) for s in made.corpus}
    assert not pairs & {(s.group, s.metadata["source"]) for s in made.queries}
    monkeypatch.setattr(repertoires, "build", None)  # would fail if it were not in the cache
    assert repertoires.load(16).corpus == made.corpus


def test_without_the_extra(monkeypatch):
    monkeypatch.setattr(repertoires, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"neuroseqret\[demo\]"):
        repertoires.corpus_folder()
