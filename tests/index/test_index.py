from __future__ import annotations

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import Index, lance_store, reader


def answers(index, queries, **options):
    return [[(hit.id, round(hit.score, 5)) for hit in hits] for hits in index.search(queries, 10, **options)]


def test_search_equals_the_naive_ranking(tiny, tmp_path):
    corpus, queries = naive.some_sequences(150), naive.some_sequences(5, seed=9, prefix="q")
    index = Index.create(tiny, tmp_path / "index", corpus)
    for query, hits in zip(queries, index.search(queries, 7), strict=True):
        expected = naive.ranking(tiny, query, corpus)[:7]
        assert [hit.id for hit in hits] == [name for name, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-5)
        assert [hit.rank for hit in hits] == list(range(1, 8))
        assert hits.query == query.id
        assert (hits.report.method, hits.report.comparisons, hits.report.fraction) == ("exhaustive", 150, 1.0)
    one = index.search(queries[2], 7)
    assert one == index.search(queries, 7)[2]
    row = corpus.ids.to_pylist().index(one[0].id)
    assert one[0].metadata == {"role": corpus[row].metadata["role"], "year": corpus[row].metadata["year"]}
    assert one[0].group == corpus[row].group
    assert one[0].parent is None


def test_reopening_loads_the_model_and_finds_the_same(tiny, tmp_path):
    corpus, queries = naive.some_sequences(60), naive.some_sequences(3, seed=9)
    made = Index.create(tiny, tmp_path / "index", corpus)
    opened = Index.open(tmp_path / "index")
    assert answers(opened, queries) == answers(made, queries)
    assert len(opened) == 60
    assert opened.info()["sequences"] == 60
    assert opened.info()["candidates"] == "exhaustive"


@pytest.mark.parametrize("candidates", ["exhaustive", "cells", "buckets", "hamming"])
def test_in_one_go_in_pieces_or_with_removals_is_the_same(tiny, tmp_path, candidates, monkeypatch, brief_hash):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 200)
    corpus, others = naive.some_sequences(600), naive.some_sequences(200, seed=5, prefix="other")
    queries = naive.some_sequences(20, seed=9)
    settings = {"candidates": candidates, "at_least": 60, "fraction": 0.1}
    whole = Index.create(tiny, tmp_path / "whole", corpus, **settings)
    pieces = Index.create(tiny, tmp_path / "pieces", **settings)
    for begin in (450, 300, 0, 150):
        pieces.add(corpus[begin : begin + 150])
        pieces.search(queries[0])
    changed = Index.create(tiny, tmp_path / "changed", others[:100], **settings)
    changed.add(corpus[::-1])
    changed.search(queries[0])
    changed.add(others[100:])
    assert changed.remove(others.ids.to_pylist()) == 200
    for index in (whole, pieces, changed):
        assert len(index) == 600
        index.compact()
    expected = answers(whole, queries)
    assert answers(pieces, queries) == expected
    assert answers(changed, queries) == expected
    assert whole.info()["candidates"] == candidates
    assert Index.open(tmp_path / "whole").search(queries[0]).report.method == candidates


@pytest.mark.parametrize("candidates", ["cells", "buckets", "hamming"])
def test_candidates_are_a_part_and_widen_until_enough(tiny, tmp_path, candidates, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 100)
    corpus, queries = naive.some_sequences(1500, longest=60), naive.some_sequences(30, seed=9, longest=60)
    index = Index.create(tiny, tmp_path / "index", corpus, candidates=candidates, at_least=150, fraction=0.01)
    kept = []
    for few, all_ in zip(index.search(queries), index.search(queries, exhaustive=True), strict=True):
        assert few.report.method == candidates
        assert few.report.comparisons < 600
        assert all_.report.comparisons == 1500
        assert len(few) == 10
        kept.append(len({h.id for h in few} & {h.id for h in all_}) / 10)
    assert np.mean(kept) > 0.75
    many = index.search(queries[0], 1500)
    assert len({hit.id for hit in many}) == 1500


def test_adding_again_is_harmless_and_other_events_are_refused(tiny, tmp_path):
    corpus = naive.some_sequences(50)
    index = Index.create(tiny, tmp_path / "index")
    assert index.add(corpus[:30]).added == 30
    again = index.add(corpus)
    assert (again.added, again.already_there) == (20, 30)
    changed = EventSequences.from_lists([([1.0, 2.0], [0, 1])], ids=["s7"])
    with pytest.raises(DataError, match="sequence s7: the index has a sequence with this id and other events"):
        index.add(changed)
    assert index.upsert(changed).replaced == 1
    assert len(index) == 50
    assert index.search(changed[0])[0].id == "s7"
    assert index.search(changed[0])[0].score == pytest.approx(1, abs=1e-5)
    assert Index.open(tmp_path / "index").add(changed).already_there == 1
    with pytest.raises(DataError, match="more than once"):
        index.add([changed[0], changed[0]])


def test_adding_again_beside_sequences_that_have_a_window_is_harmless(tiny, tmp_path):
    corpus = naive.some_sequences(3)
    index = Index.create(tiny, tmp_path / "index", corpus)
    ended = naive.some_sequences(1, seed=1, prefix="ended")
    ended = ended.with_column("end", ended.observed()[1] + 1)
    done = index.add(EventSequences.concat([corpus, ended]))
    assert (done.added, done.already_there) == (1, 3)


def test_a_sequence_that_no_window_catches_is_refused(tiny, tmp_path):
    caught = EventSequences.from_lists([([0.0, 0.5], [0, 1])], ids=["x"], starts=[0.0], ends=[30.0])
    missed = EventSequences.from_lists([([5.0, 5.5], [0, 1])], ids=["x"], starts=[0.0], ends=[30.0])
    index = Index.create(tiny, tmp_path / "index", caught, window_duration=1.0, window_step=10.0)
    for change, batch in ((index.upsert, missed), (index.add, missed.with_column("id", ["y"]))):
        with pytest.raises(DataError, match=r"sequence [xy]: none of its windows holds an event; leave it out"):
            change(batch)
    assert [hit.window for hit in index.search(caught[0])] == ["x[0:2]"]
    assert index.remove("y") == 0


@pytest.mark.parametrize("windows", [{}, {"window_events": 6}])
def test_upsert_replaces_and_adds_in_one_commit(tiny, tmp_path, windows):
    corpus, other = naive.some_sequences(40), naive.some_sequences(60, seed=5)  # the same ids, and 20 more
    index = Index.create(tiny, tmp_path / "index", corpus, **windows)
    for batch in (other[30:], other):  # before and after the store has indices
        done = index.upsert(batch)
        assert done.replaced + done.added == len(batch)
        index.compact()
    rebuilt = Index.create(tiny, tmp_path / "rebuilt", other, **windows)
    assert len(index) == len(rebuilt)
    for query in corpus[:5]:
        assert index.search(query, 100) == rebuilt.search(query, 100)


def test_removal_is_seen_by_the_next_search_and_ids_can_come_back(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 40)
    corpus = naive.some_sequences(100)
    index = Index.create(tiny, tmp_path / "index", corpus)
    query = corpus[3]
    assert index.search(query)[0].id == "s3"
    assert index.remove(["s3", "unknown"]) == 1
    assert index.remove("s3") == 0
    assert "s3" not in {hit.id for hit in index.search(query, 100)}
    assert len(index.search(query, 1000)) == 99
    index.add(corpus[3:4])
    assert index.search(query)[0].id == "s3"
    assert len(index) == 100


def test_own_commits_are_seen_however_long_ago_they_were(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(lance_store, "_UNSETTLED", 0.0)
    corpus = naive.some_sequences(20)
    index = Index.create(tiny, tmp_path / "index", corpus[:10])
    assert len(index) == 10
    index.add(corpus[10:])
    assert len(index) == 20


def test_two_handles_see_each_others_commits(tiny, tmp_path):
    corpus = naive.some_sequences(90)
    writer = Index.create(tiny, tmp_path / "index", corpus[:30])
    reader = Index.open(tmp_path / "index")
    for stop in (60, 90):
        assert len(reader.search(corpus[0], 1000)) == stop - 30
        writer.add(corpus[stop - 30 : stop])
        assert len(reader.search(corpus[0], 1000)) == stop
        assert reader.search(corpus[stop - 1])[0].id == f"s{stop - 1}"
    reader.add(naive.some_sequences(5, seed=3, prefix="more"))
    assert len(writer) == 95
    writer.remove("s0")
    assert len(reader) == 94


def test_where_filters_before_ranking(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 100)
    corpus, queries = naive.some_sequences(400), naive.some_sequences(5, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus[:350], candidates="cells", at_least=30)
    index.search(queries)
    index.add(corpus[350:])
    for query in queries:
        expected = [i for i, _ in naive.ranking(tiny, query, corpus) if int(i[1:]) % 3 == 0][:10]
        hits = index.search(query, where="role = 'GK'", exhaustive=True)
        assert [hit.id for hit in hits] == expected
        found = index.search(query, where="role = 'GK' OR year = 2001", at_least=80)
        assert len(found) == 10
        assert all(hit.metadata["role"] == "GK" or hit.metadata["year"] == 2001 for hit in found)
    rare = index.search(queries[0], where="\"group\" = 'g3' AND year = 2005 AND role = 'MF'")
    assert {h.id for h in rare} == {f"s{i}" for i in range(400) if i % 7 == 3 and i % 20 == 5 and i % 3 == 2}
    assert index.search(queries[0], where="year > 3000") == []
    with pytest.raises(UserError, match=r"condition 'rolle = 1' cannot be used: .*rolle.*; columns are id, (?!.*nsr_)"):
        index.search(queries[0], where="rolle = 1")
    with pytest.raises(UserError, match="cannot be used"):
        index.search(queries[0], where="role =")


def test_a_condition_holds_for_every_hit_after_the_rows_moved(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(300))
    query, condition = naive.some_sequences(1, seed=9)[0], "role = 'GK'"
    earlier = index._reader.snapshot()  # of a search in another thread
    index._reader.rebuild()
    index._reader.allowed(earlier, condition)
    assert {hit.metadata["role"] for hit in index.search(query, 100, where=condition)} == {"GK"}
    index.search(query, where=condition)
    Index.open(tmp_path / "index").compact()
    index._reader.rebuild()
    assert {hit.metadata["role"] for hit in index.search(query, 100, where=condition)} == {"GK"}


def test_metadata_columns_may_come_and_go(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(5))
    plain = naive.some_sequences(5, seed=1, prefix="plain").without_columns("role", "year", "group")
    index.add(plain.with_column("club", ["Ajax"] * 5))
    assert index.search(plain[0])[0].metadata == {"club": "Ajax"}
    assert index.search(naive.some_sequences(5)[0])[0].metadata == {"role": "GK", "year": 2000}
    assert len(index.search(plain[0], where="club = 'Ajax'")) == 5
    index.add(plain.with_column("id", list("abcde")).with_column("note", [None] * 5))
    index.add(plain.with_column("id", list("fghij")).with_column("note", ["loan"] * 5))  # its type is known only now
    assert len(index.search(plain[0], where="note = 'loan'")) == 5
    with pytest.raises(UserError, match=r"column 'club' is of type .*double.*; convert or rename it"):
        index.add(naive.some_sequences(1, prefix="x").with_column("club", [[1.5]]))


@pytest.mark.parametrize("name", ["", "_rowid", "_rowoffset", "a.b", "a`b", "nsr_key"])
def test_a_column_that_the_store_cannot_hold_is_refused(tiny, tmp_path, name):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(10))
    more = naive.some_sequences(2, seed=1, prefix="more").with_column(name, [1, 2])
    with pytest.raises(DataError, match="a metadata column"):
        index.add(more)
    assert len(index.search(more[0])) == 10  # a query's columns are not stored


@pytest.mark.parametrize("name", ["", "a.b"])
def test_a_write_that_fails_leaves_no_column_behind(tiny, tmp_path, monkeypatch, name):
    monkeypatch.setattr("neuroseqret.index.rows.check_columns", lambda *_: None)
    corpus, more = naive.some_sequences(10), naive.some_sequences(2, seed=1).with_column("fine", [1, 2])
    index = Index.create(tiny, tmp_path / "index", corpus)
    expected = answers(index, corpus[:2])
    for change, batch in ((index.add, more.with_column("id", ["x", "y"])), (index.upsert, more)):
        with pytest.raises(UserError, match="cannot be written to"):
            change(batch.with_column(name, [1, 2]))
        assert answers(index, corpus[:2]) == answers(Index.open(tmp_path / "index"), corpus[:2]) == expected
        assert "fine" not in Index.open(tmp_path / "index")._store.schema.names
    assert index.upsert(more).replaced == 2


def test_a_column_of_another_type_adds_no_column(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(5))
    more = naive.some_sequences(2, seed=1, prefix="more").without_columns("year")
    for year in ([{"a": 1}] * 2, [[1.5]] * 2, ["x", "y"]):
        with pytest.raises(UserError, match=r"column 'year' is .*; convert or rename it"):
            index.add(more.with_column("year", year).with_column("note", ["a", "b"]))
    assert "note" not in index._store.schema.names


def test_one_sequence_without_a_window_or_group_costs_no_other_its_own(tiny, tmp_path):
    corpus = naive.some_sequences(3)
    first, last = corpus.observed()
    index = Index.create(tiny, tmp_path / "index", corpus.with_column("start", first - 1).with_column("end", last + 1))
    index.add(naive.some_sequences(1, seed=1, prefix="bare").without_columns("group"))
    for _ in range(2):
        back = index.get(["s0", "bare0", "s2"])
        assert np.array_equal(back.starts, [first[0] - 1, np.nan, first[2] - 1], equal_nan=True)
        assert np.array_equal(back.ends, [last[0] + 1, np.nan, last[2] + 1], equal_nan=True)
        assert back.groups.to_pylist() == ["g0", None, "g2"]
        index.compact()
    assert index.get("bare0").ends is None


def test_a_reranker_sees_the_windows_of_those_that_have_one(tiny, tmp_path):
    corpus = naive.some_sequences(3)
    index = Index.create(tiny, tmp_path / "index", corpus.with_column("end", corpus.observed()[1] + 1))
    index.add(naive.some_sequences(1, seed=1, prefix="bare"))
    seen = []

    class Sees(naive.LengthReranker):
        def compute_scores(self, queries, candidates):
            seen.append(dict(zip(candidates.ids.to_pylist(), np.isnan(candidates.ends), strict=True)))
            return super().compute_scores(queries, candidates)

    for _ in range(2):
        index.search(corpus[0], rerank=Sees())
        index.compact()
    assert seen == [{"s0": False, "s1": False, "s2": False, "bare0": True}] * 2


def test_ids_and_numbers_of_another_type_are_one_clear_line(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(3))
    for ask in (index.remove, index.get):
        with pytest.raises(UserError, match=r"ids must be strings, not int \(1\)"):
            ask(["s0", 1])
    for options in ({"k": "3"}, {"k": 2.5}, {"at_least": "x"}, {"fraction": "x"}):
        with pytest.raises(UserError, match=r"must be a .*number, not "):
            index.search(naive.some_sequences(1)[0], **options)
    assert len(index.search(naive.some_sequences(1)[0], np.int64(2))) == 2


def test_batches_stream_through_and_every_batch_is_a_commit(tiny, tmp_path):
    corpus = naive.some_sequences(100)
    index = Index.create(tiny, tmp_path / "index")

    def stream():
        for begin in range(0, 100, 20):
            yield corpus[begin : begin + 20]
            assert len(Index.open(tmp_path / "index")) == begin + 20
            if begin == 60:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.add(stream())
    done = Index.open(tmp_path / "index").add(corpus[b : b + 20] for b in range(0, 100, 20))
    assert (done.added, done.already_there) == (20, 80)
    assert index.add(iter(corpus)).already_there == 100


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("change", ["upsert", "remove"])
def test_compact_after_changes_by_another_process(tiny, tmp_path, change, merged):
    corpus = naive.some_sequences(60)
    index = Index.create(tiny, tmp_path / "index", corpus[:30])
    if merged:
        index.compact()
    index.add(corpus[30:])
    other = Index.open(tmp_path / "index", tiny)
    if change == "upsert":
        other.upsert(corpus[:20])
    else:
        other.remove(corpus.ids.to_pylist()[:20])
    other.compact()
    index.compact()
    info = index.info()
    assert info["not_yet_in_structure"] == info["removed_in_structure"] == 0
    assert len(index) == (40 if change == "remove" else 60)
