"""Threads share an index: searches wait for nobody, and give what a single thread would get."""

from __future__ import annotations

import sys
import threading
import time
import warnings

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.errors import UserError
from neuroseqret.index import Index, following, hot_builder, reader
from neuroseqret.index.following import Follower
from neuroseqret.index.lance_store import LanceStore

QUERIES = naive.some_sequences(8, seed=9, prefix="q")


def answers(index, k=10, **options):
    return [[(hit.id, hit.score) for hit in hits] for hits in index.search(QUERIES, k, **options)]


@pytest.fixture
def held_build(monkeypatch):
    """Rebuilds start, and go on when the test says so."""
    started, go_on, write = threading.Event(), threading.Event(), hot_builder._write

    def held(*given):
        started.set()
        assert go_on.wait(60)
        write(*given)

    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    yield lambda: monkeypatch.setattr(hot_builder, "_write", held), started, go_on
    go_on.set()


def test_a_search_does_not_wait_for_a_rebuild(tiny, tmp_path, held_build):
    hold, started, go_on = held_build
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(100))
    assert len(index) == 100
    build = index._reader.snapshot().hot.build
    assert build
    hold()
    index.add(naive.some_sequences(40, seed=1, prefix="a"))  # a rebuild is due
    found = answers(index, 200)
    assert started.wait(10)
    index.add(naive.some_sequences(5, seed=2, prefix="b"))  # during the rebuild
    index.remove(["s3", "a7"])
    during = answers(index, 200)
    assert {len(hits) for hits in found} == {140}
    assert {len(hits) for hits in during} == {143}
    assert index._reader.snapshot().hot.build == build
    go_on.set()
    index.refresh(wait=True)
    snapshot = index._reader.snapshot()
    assert snapshot.hot.build != build
    assert len(snapshot.hot) == 140  # of the commit when the rebuild began; what came since is followed
    assert answers(index, 200) == during
    assert answers(Index.open(tmp_path / "index"), 200) == during


@pytest.mark.parametrize("windows", [{}, {"window_events": 6}])
def test_a_long_tail_is_filed_in_the_cells(tiny, tmp_path, held_build, monkeypatch, windows):
    """Rows that come during a rebuild are not compared one by one for long; all answers are right."""
    hold, started, go_on = held_build
    monkeypatch.setattr(reader, "FILED_ROWS", 50)
    many = {"candidates": "cells", "at_least": 40, **windows}
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(300), **many)
    index.watch(60.0)
    hold()
    for turn in range(5):  # what is added is followed at once
        index.add(naive.some_sequences(40, seed=turn, prefix=f"t{turn}-"))
        index.upsert(naive.some_sequences(3, seed=50 + turn, prefix="s"))
        index._reader.look()  # as the background does
    index.remove(["s200", "t0-7", "t1-9"])
    assert started.wait(10)
    snapshot, whole = index._reader.snapshot(), Index.open(tmp_path / "index")
    filed = len(snapshot.filed.embeddings)
    assert filed > 50
    assert filed + len(snapshot.tail_embeddings) == snapshot.tail
    for query in QUERIES:
        hits = index.search(query, 12)
        assert hits.report.comparisons < len(snapshot)
        close = {hit.id: hit.score for hit in index.search(query, 400, exhaustive=True)}
        assert all(close[hit.id] == hit.score for hit in hits)
        for k in (12, 400):
            found = [(h.id, h.score, h.metadata, h.window) for h in index.search(query, k, exhaustive=True)]
            assert found == [(h.id, h.score, h.metadata, h.window) for h in whole.search(query, k, exhaustive=True)]
    assert index.search(id="t2-3", k=5, exhaustive=True) == whole.search(id="t2-3", k=5, exhaustive=True)
    where = {"where": {"role": "GK"}, "exhaustive": True}
    assert index.search(QUERIES[0], 50, **where) == whole.search(QUERIES[0], 50, **where)
    asked = [hit.window or hit.id for hit in index.search(QUERIES[1], 400)]
    view = whole.view()
    assert np.array_equal(snapshot.vectors(snapshot.rows_of(asked)), view.embeddings(view.rows_of(asked)))
    go_on.set()
    index.refresh(wait=True)
    assert answers(index, 400, exhaustive=True) == answers(Index.open(tmp_path / "index"), 400, exhaustive=True)


def test_a_structure_that_another_process_built_from_a_newer_commit_is_taken_whole(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    other = Index.create(tiny, tmp_path / "index", naive.some_sequences(100))
    index = Index.open(tmp_path / "index")
    answers(index, 200)
    other.add(naive.some_sequences(40, seed=9, prefix="new"))
    other._reader.rebuild()
    index._reader._build()  # it began before the commit was seen, and finds the other one's structure
    assert index._reader.snapshot().hot.build == other._reader.snapshot().hot.build
    assert answers(index, 200) == answers(other, 200)


def test_a_rebuild_that_fails_is_a_warning_and_is_not_tried_all_the_time(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 30)
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(100))
    assert len(index) == 100
    tried = []

    def fails(*_):
        tried.append(1)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hot_builder, "_write", fails)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for turn in range(3):
            index.add(naive.some_sequences(40, seed=turn, prefix=f"a{turn}-"))
            assert len(index.search(QUERIES[0], 1000)) == 140 + 40 * turn
            index.refresh(wait=True)
    assert len(tried) == len(told) == 1
    assert "cannot be written (No space left on device); searching is slower" in str(told[0].message)


def test_following_finds_what_other_processes_changed(tiny, tmp_path):
    """Rows added, replaced and removed, a part that is gone, and a compaction; each compared with a fresh opening."""
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    other, rng = Index.open(tmp_path / "index"), np.random.default_rng(3)
    names = [f"s{i}" for i in range(50)]
    for turn in range(12):
        kind = turn % 6
        if kind == 0:
            other.add(naive.some_sequences(4, seed=turn, prefix=f"t{turn}-"))
            names += [f"t{turn}-{i}" for i in range(4)]
        elif kind in (1, 3):
            gone = set(rng.choice(names, 3, replace=False).tolist())
            other.remove(sorted(gone))
            names = [name for name in names if name not in gone]
        elif kind == 2:
            other.upsert(naive.some_sequences(6, seed=turn, prefix="s"))
            names = list(dict.fromkeys([*names, *(f"s{i}" for i in range(6))]))
        elif kind == 4:
            own = [name for name in names if name.startswith("t")]
            other.remove(own)  # a whole part
            names = [name for name in names if name not in own]
        else:
            other.compact()
        assert answers(index, 500) == answers(Index.open(tmp_path / "index"), 500)
        assert {name for name, _ in answers(index, 500)[0]} == set(names)


@pytest.mark.parametrize("windows", [{}, {"window_events": 6}])
def test_following_an_upsert_reads_only_the_new_rows(tiny, tmp_path, monkeypatch, windows):
    """The rows that it replaced are known by their keys; also if a part of the store is gone with the last of them."""
    monkeypatch.setattr(reader, "REBUILD_ROWS", 40)  # so some of them are in the structure, some came after it
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(60), **windows)
    index.search(QUERIES[0])
    index.add(naive.some_sequences(5, seed=1, prefix="t"))
    index.search(QUERIES[0])
    for name in ("removed", "get"):
        monkeypatch.setattr(LanceStore, name, lambda *_: pytest.fail("the store was asked what was removed"))
    monkeypatch.setattr(following, "serials_of", lambda *_: pytest.fail("all rows were read"))
    for turn, prefix in enumerate(["t", "s", "t", "s"]):
        index.upsert(naive.some_sequences(5, seed=10 + turn, prefix=prefix))
        assert answers(index, 500) == answers(Index.open(tmp_path / "index"), 500)
    index.refresh(wait=True)


def test_32_threads_search_while_others_write(tiny, tmp_path, monkeypatch):
    """The first 200 sequences stay; what is added has other marks, so it can only come after the best hits."""
    monkeypatch.setattr(reader, "REBUILD_ROWS", 60)
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(200))
    where = "id LIKE 's%'"
    expected = [[(h.id, h.score) for h in hits] for hits in index.search(QUERIES, 20, where=where)]
    done, wrong, searches = threading.Event(), [], [0] * 32

    def search(number):
        try:
            while not done.is_set():
                at = (number + searches[number]) % len(QUERIES)
                found = [(h.id, h.score) for h in index.search(QUERIES[at], 20, where=where)]
                if found != expected[at]:
                    wrong.append((at, found))
                if len({h.id for h in index.search(QUERIES[at], 1000)}) < 200:
                    wrong.append((at, "rows are missing"))
                searches[number] += 1
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=search, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for turn in range(3):
        index.add(naive.some_sequences(25, seed=50 + turn, prefix=f"w{turn}-"))
        index.upsert(naive.some_sequences(5, seed=90 + turn, prefix="w0-"))
        index.remove([f"w{turn}-{i}" for i in range(5, 10)])
    done.set()
    for thread in threads:
        thread.join(60)
    index.refresh(wait=True)
    assert not wrong
    assert sum(searches) > 32
    assert len(index) == 200 + 3 * 20
    assert answers(index, 500) == answers(Index.open(tmp_path / "index"), 500)


@pytest.mark.parametrize("tail", [0, 40])
def test_a_short_search_keeps_pythons_lock(tiny, tmp_path, tail):
    """Each time it gave the lock up, it could wait for every other thread; eight would then do less than one."""
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(200), candidates="cells", at_least=20)
    index.watch(60.0)
    index.add(naive.some_sequences(tail, seed=1, prefix="t"))
    index.remove(["s3"] if tail else [])
    vectors, options = index.embed_queries(QUERIES), index.search_options(5)
    scores = [[hit.score for hit in hits] for hits in index.search(QUERIES, 6)]
    alone = [at for at in range(len(QUERIES)) if len(set(scores[at])) == 6]  # ties are put in order by Arrow
    queries = [(QUERIES[at : at + 1], vectors[at : at + 1]) for at in alone]
    turns, done = [0], threading.Event()

    def other():  # takes the lock whenever it can be had, and gives it back at once
        while not done.is_set():
            turns[0] += 1
            time.sleep(0)

    def search():
        view = index.view()
        return [view.search(query, vector, options) for query, vector in queries]

    expected, before, thread = search(), sys.getswitchinterval(), threading.Thread(target=other)
    sys.setswitchinterval(60.0)  # nobody takes it from the one that has it
    try:
        thread.start()
        for _ in range(20):
            begun = turns[0]
            assert search() == expected
            assert turns[0] == begun
            time.sleep(0.001)
    finally:
        done.set()
        sys.setswitchinterval(before)
        thread.join()
    assert turns[0] > 20
    assert len(queries) > 2


def test_a_removed_folder_is_one_line(tiny, tmp_path):
    import shutil

    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    assert len(index) == 20
    shutil.rmtree(tmp_path / "index")
    for attempt in (lambda: index.search(QUERIES[0]), lambda: index.add(naive.some_sequences(2, prefix="n"))):
        with pytest.raises(UserError) as caught:
            attempt()
        assert "\n" not in str(caught.value)
        assert str(tmp_path / "index") in str(caught.value)


def test_nobody_waits_for_the_model(tiny, tmp_path, monkeypatch):
    """While the model embeds what is added, others write and search."""
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    busy, go_on, embed = threading.Event(), threading.Event(), type(tiny).compute_embeddings

    def slow(self, many, role):
        if many.ids[0].as_py().startswith("slow"):
            busy.set()
            assert go_on.wait(60)
        return embed(self, many, role)

    monkeypatch.setattr(type(tiny), "compute_embeddings", slow)
    adding = threading.Thread(target=index.add, args=(naive.some_sequences(3, prefix="slow"),))
    adding.start()
    assert busy.wait(10)
    begun = time.monotonic()
    index.add(naive.some_sequences(3, prefix="quick"))
    assert len(index.search(QUERIES[0], 100)) == 23
    assert time.monotonic() - begun < 30
    go_on.set()
    adding.join()
    assert len(index.search(QUERIES[0], 100)) == 26


def test_a_watched_index_follows_others_without_its_searches(tiny, tmp_path, monkeypatch):
    """No search reads a commit: while the background cannot either, searches go on with the commit before."""
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    other = Index.open(tmp_path / "index")
    index.watch(0.02)
    held, follow = threading.Event(), Follower.follow

    def waits(self, *given):
        assert held.wait(60)
        return follow(self, *given)

    with monkeypatch.context() as during:
        during.setattr(Follower, "follow", waits)
        other.add(naive.some_sequences(5, seed=1, prefix="a"))
        time.sleep(0.1)  # it is being followed now
        assert len(index.search(QUERIES[0], 100)) == 20
        held.set()
        index.refresh()
    assert len(index.search(QUERIES[0], 100)) == 25
    index.add(naive.some_sequences(2, seed=2, prefix="own"))
    assert len(index.search(QUERIES[0], 100)) == 27  # of this process: at once
    other.remove(["s3", "a1"])
    end = time.monotonic() + 60
    while len(index.search(QUERIES[0], 100)) != 25:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert answers(index, 100) == answers(Index.open(tmp_path / "index"), 100)
    with pytest.raises(UserError, match="seconds is a number from"):
        index.watch(0)
