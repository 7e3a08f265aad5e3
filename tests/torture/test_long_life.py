"""Memory, open files and threads of a process that searches and commits stay level: the short form."""

from __future__ import annotations

import math

from naive.index import TinyEmbedder, some_sequences
from neuroseqret.index import Index
from torture import long_life
from torture.long_life import Figures


def test_a_process_that_searches_and_commits_holds_no_more_and_more(tmp_path, monkeypatch):
    monkeypatch.setattr(long_life, "COMPACT_EVERY", 9)
    index = Index.create(TinyEmbedder(), tmp_path / "index", some_sequences(100))
    figures = list(long_life.live(index, 72, 36, math.inf))
    more = long_life.growth(figures[12:])  # the first commits load what all later ones use
    assert figures[-1].commits == 36
    assert more["files"] <= 8
    assert more["threads"] <= 8
    assert more["megabytes"] < 60


def test_growth_is_counted_from_the_most_of_the_beginning():
    figures = [Figures(at, at, 100.0 + at, 20, 4) for at in range(20)]
    assert long_life.growth(figures) == {"megabytes": 18.0, "files": 0, "threads": 0}
