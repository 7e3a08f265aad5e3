"""Searching with a sequence of the index itself: by id, by several ids, by a part of its events."""

from __future__ import annotations

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import Index, reader


def found(hits):
    return [(hit.id, hit.score) for hit in hits]


def test_an_indexed_sequence_finds_what_it_finds_as_a_query_without_itself(tiny, tmp_path):
    corpus = naive.some_sequences(40)
    index = Index.create(tiny, tmp_path / "index", corpus)
    for options in ({}, {"expand": False, "exhaustive": True}, {"where": "role = 'GK'"}):
        plain = [pair for pair in found(index.search(corpus[3], 40, **options)) if pair[0] != "s3"]
        hits = index.search(id="s3", k=40, **options)
        assert found(hits) == plain
        assert [hit.rank for hit in hits] == list(range(1, len(plain) + 1))
        assert hits.query == "s3"
    assert len(index.search(id="s3", k=5)) == 5
    assert [hits.query for hits in index.search(id=["s7", "s3", "s7"], k=2)] == ["s7", "s3", "s7"]
    assert found(index.search(id=["s7", "s3"])[1]) == found(index.search(id="s3"))
    # Ids as the columns of sequences hold them.
    assert found(index.search(id=corpus.ids[3])) == found(index.search(id="s3"))
    assert [hits.query for hits in index.search(id=corpus.ids[:2])] == ["s0", "s1"]


def test_itself_is_left_out_before_expanding_and_reranking(tiny, tmp_path):
    corpus = naive.some_sequences(40)
    whole = Index.create(tiny, tmp_path / "whole", corpus)
    rest = Index.create(tiny, tmp_path / "rest", corpus[[row for row in range(40) if row != 3]])
    reranker = naive.LengthReranker()
    for options in ({"expand": True}, {"rerank": reranker, "rerank_top": 8}):
        assert found(whole.search(id="s3", **options)) == found(rest.search(corpus[3], **options))


def test_it_is_left_out_wherever_it_lies(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)
    corpus = naive.some_sequences(40)
    index = Index.create(tiny, tmp_path / "index", corpus[:30])
    index.refresh()
    monkeypatch.setattr(reader, "REBUILD_ROWS", 1000)
    index.add(corpus)
    index.remove("s5")
    for name in ("s2", "s35"):
        assert {hit.id for hit in index.search(id=name, k=40)} == {f"s{n}" for n in range(40)} - {name, "s5"}
    with pytest.raises(UserError, match="holds no sequence 's5'; check the id"):
        index.search(id="s5")


def test_a_part_of_the_events(tiny, tmp_path):
    corpus = naive.some_sequences(20, shortest=12)
    index = Index.create(tiny, tmp_path / "index", corpus)
    part = corpus[4:5].windows(events=5, step=5)[1]
    expected = [pair for pair in found(index.search(part, 20)) if pair[0] != "s4"]
    for events in (slice(5, 10), (5, 10), [5, 10]):
        hits = index.search(id="s4", events=events, k=20)
        assert found(hits) == expected
        assert hits.query == "s4[5:10]"
    assert [hits.query for hits in index.search(id=["s4", "s5"], events=slice(2, 9))] == ["s4[2:9]", "s5[2:9]"]
    last = len(corpus[4])
    assert index.search(id="s4", events=slice(-3, None)).query == f"s4[{last - 3}:{last}]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"id": "nobody"}, "holds no sequence 'nobody'; check the id"),
        ({"id": ["s1", "nobody"]}, "holds no sequence 'nobody'; check the id"),
        ({"id": 7}, "ids must be strings, not int"),
        ({}, "give a query or the id of an indexed sequence"),
        ({"id": "s1", "queries": naive.some_sequences(1)}, "or the id of an indexed sequence, not both"),
        ({"queries": "s1"}, r"search\(id='s1'\) searches with a sequence of the index"),
        ({"queries": naive.some_sequences(1), "events": (1, 2)}, "events takes a part of an indexed sequence"),
        ({"id": "s1", "events": (90, 95)}, r"sequence s1 has \d+ events, none of them in events 90:95"),
        ({"id": "s1", "events": slice(0, 9, 2)}, "leave out the step 2"),
        ({"id": "s1", "events": 5}, r"events is a slice or \(first, stop\)"),
        ({"id": "s1", "events": (0.5, 3)}, "counted by whole numbers"),
    ],
)
def test_mistakes_are_explained_in_one_line(tiny, tmp_path, arguments, message):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(10))
    with pytest.raises(UserError, match=message) as caught:
        index.search(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("windows", [{"window_events": 6}, {"window_events": 8, "window_step": 3}])
def test_in_an_index_of_windows_no_window_of_the_sequence_is_found(tmp_path, windows):
    corpus = naive.some_sequences(15, shortest=10, mark_names=("a", "b", "c", "d"))
    model = naive.TinyEmbedder(3, mark_names=("a", "b", "c"))  # some windows have the mark (unknown), others do not
    index = Index.create(model, tmp_path / "index", **windows)
    index.add(corpus, unknown_marks="keep")
    others = {name for name in corpus.ids.to_pylist() if name != "s3"}
    whole = index.search(id="s3", k=15)
    assert {hit.id for hit in whole} == others
    assert found(whole) == [
        pair for pair in found(index.search(corpus[3], 15, unknown_marks="keep")) if pair[0] != "s3"
    ]
    window = index.search(corpus[3], 15, unknown_marks="keep")[
        [hit.id for hit in index.search(corpus[3], 15, unknown_marks="keep")].index("s3")
    ].window
    by_window = index.search(id=window, k=15)
    assert by_window.query == window
    assert {hit.id for hit in by_window} == others
    assert {hit.id for hit in index.search(id="s3", events=(2, 9), expand=True, k=15)} == others
    got = index.view().whole(["s4", window])
    assert np.array_equal(got[0].times, corpus[4].times)
    assert np.array_equal(got[0].marks, corpus[4].marks)
    assert got[1].id == window
    with pytest.raises(UserError, match="holds no sequence 'nobody'; check the id"):
        index.search(id=["s3", "nobody"])


def test_windows_with_gaps_between_them_make_no_whole_sequence(tiny, tmp_path):
    corpus = naive.some_sequences(5, shortest=20)
    index = Index.create(tiny, tmp_path / "index", corpus, window_events=4, window_step=8)
    with pytest.raises(DataError, match=r"s1: the windows leave out events 4 to 7; use the id of one of its windows"):
        index.search(id="s1")
    assert len(index.search(id="s1[8:12]", k=9)) == 4
