"""Memory, open files and threads of a process that searches and commits stay level: the short form."""

from __future__ import annotations

from naive.index import TinyEmbedder, some_sequences
from neuroseqret.index import Index
from torture import long_life
from torture.long_life import Figures, Life


def test_a_process_that_searches_and_commits_holds_no_more_and_more(tmp_path, monkeypatch):
    monkeypatch.setattr(long_life, "COMPACT_EVERY", 9)
    monkeypatch.setattr(long_life, "BULK_EVERY", 10)
    monkeypatch.setattr(long_life, "BULK", 50)
    index = Index.create(TinyEmbedder(), tmp_path / "index", some_sequences(100))
    life = Life(index, 288, 36, laps=36)
    figures = list(life.live())
    more = long_life.growth(figures[12:])  # the first commits load what all later ones use
    assert figures[-1].commits == 36
    assert life.searched >= 288
    assert life.latency().keys() == {"quiet", "commits", "rebuilds"}
    assert sum(part["searches"] for part in life.latency().values()) == life.searched
    assert more["files"] <= 8
    assert more["threads"] <= 8
    assert more["megabytes"] < 60
    assert index.check() == []


def test_growth_is_counted_from_the_most_of_the_beginning():
    figures = [Figures(at, at, 100.0 + at, 20, 4) for at in range(20)]
    assert long_life.growth(figures) == {"megabytes": 18.0, "files": 0, "threads": 0}
