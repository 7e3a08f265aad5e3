from __future__ import annotations

import errno
import json
import os

import numpy as np
import pytest

from naive import index as naive
from neuroseqret.index import Index, hot, hot_builder, lance_store, reader
from neuroseqret.storage import lock


def answers(index, queries):
    return [[(hit.id, round(hit.score, 5)) for hit in hits] for hits in index.search(queries, 10)]


EVERY = ["begins.npy", "embeddings.npy", "lengths.npy", "marks.bin", "rows.arrow", "serials.npy", "times.bin"]
CODES = ["codes.npy", "hash.safetensors"]
TABLES = ["table_offsets.npy", "table_positions.npy", "table_rows.npy"]


@pytest.mark.parametrize(
    ("candidates", "files"),
    [
        ("exhaustive", []),
        ("cells", ["cells.npy", "centres.npy", "rounded.npy", "scale.npy"]),
        ("hamming", CODES),
        ("buckets", [*CODES, *TABLES]),
    ],
)
def test_the_layout_on_disk_stays_so_that_older_indexes_open_without_a_rebuild(
    tiny, tmp_path, candidates, files, brief_hash
):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50), candidates=candidates)
    index.compact()
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    assert sorted(file.name for file in current.iterdir()) == sorted([*EVERY, *files, "meta.json"])
    meta = json.loads((current / "meta.json").read_text())
    assert sorted(meta) == ["check", "checks", "files", "last_serial", "layout", "method", "parts"]
    assert (meta["layout"], meta["method"]) == (2, candidates)
    assert sorted(meta["files"]) == sorted([*EVERY, *files])


@pytest.mark.parametrize("lacks", ["the file system", "the system", "maps"])
def test_room_for_a_rebuild_is_taken_where_it_cannot_be_asked_for(tiny, tmp_path, monkeypatch, lacks):
    memmap = np.memmap

    def refuse(*_):
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    def read_only(file, *given, **rest):
        if "r+" in given:
            raise OSError(errno.ENODEV, "No such device")
        return memmap(file, *given, **rest)

    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    before = answers(index, naive.some_sequences(5, seed=9))
    monkeypatch.setattr(hot_builder, "_ZEROS", 1000)  # the room is no multiple of this
    if lacks == "the system":
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    elif lacks == "maps":
        monkeypatch.setattr(np, "memmap", read_only)
    else:
        monkeypatch.setattr(os, "posix_fallocate", refuse, raising=False)
    index.compact()
    assert answers(index, naive.some_sequences(5, seed=9)) == before
    assert index.check() == []


def test_commits_during_a_rebuild_do_not_reach_the_structure(tiny, tmp_path, monkeypatch):
    corpus, queries = naive.some_sequences(80), naive.some_sequences(5, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus[:60])
    other = Index.open(tmp_path / "index")
    read_rows = hot_builder._read_rows

    def commit_after(store):
        found = read_rows(store)
        for writer in (index, other):  # the first one moves the table that the rebuild was started with
            added = corpus[60:70] if writer is index else corpus[70:]
            writer.add(added)
            writer.remove(added.ids.to_pylist()[:3])
            writer.remove(corpus.ids.to_pylist()[:20] if writer is index else corpus.ids.to_pylist()[20:30])
        return found

    with monkeypatch.context() as patched:
        patched.setattr(hot_builder, "_read_rows", commit_after)
        index.compact()
    built = hot.open_current(tmp_path / "index" / "hot", 16)
    assert sorted(built.rows.column("id").to_pylist()) == sorted(corpus.ids.to_pylist()[:60])
    place = {name: row for row, name in enumerate(corpus.ids.to_pylist())}
    expected = tiny.embed(corpus)[[place[name] for name in built.rows.column("id").to_pylist()]]
    assert np.array_equal(built.embeddings, expected)
    alive = np.array([*range(30, 60), *range(63, 70), *range(73, 80)])
    fresh = Index.create(tiny, tmp_path / "fresh", corpus[alive])
    assert answers(index, queries) == answers(Index.open(tmp_path / "index"), queries) == answers(fresh, queries)


@pytest.mark.parametrize("mask", [0o022, 0o002, 0o077])
def test_the_folders_have_the_modes_of_any_new_one(tiny, tmp_path, mask):
    before = os.umask(mask)
    try:
        Index.create(tiny, tmp_path / "index", naive.some_sequences(50)).compact()
    finally:
        os.umask(before)
    index = tmp_path / "index"
    for folder in (index, index / "hot", index / "hot" / (index / "hot" / hot.CURRENT).read_text()):
        assert folder.stat().st_mode & 0o777 == 0o777 & ~mask
    assert (index / "write.lock").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("by_other", [True, False])
def test_a_rebuild_that_had_to_wait_is_made_up_for(tiny, tmp_path, monkeypatch, by_other):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10)
    monkeypatch.setattr(lance_store, "_UNSETTLED", 0.0)
    corpus, query = naive.some_sequences(50), naive.some_sequences(1, seed=9)[0]
    index = Index.create(tiny, tmp_path / "index", corpus[:5])
    index.search(query)
    index.add(corpus)
    with lock.held(tmp_path / "index" / "hot.lock"):  # another process builds
        expected = index.search(query, 50)
        assert index.info()["not_yet_in_structure"] == 50
        if by_other:
            hot_builder.build(tmp_path / "index" / "hot", index._store.pinned(), index.config)
    built = (tmp_path / "index" / "hot" / hot.CURRENT).read_text() if by_other else None
    index.refresh(wait=True)
    assert index.search(query, 50) == expected
    assert index.info()["not_yet_in_structure"] == 0
    if by_other:
        assert (tmp_path / "index" / "hot" / hot.CURRENT).read_text() == built
