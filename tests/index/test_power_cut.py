"""What was acknowledged survives a power cut, and a cut at any moment leaves an index that opens."""

from __future__ import annotations

import threading
import warnings

import pytest

from naive import index as naive
from neuroseqret.errors import UserError
from neuroseqret.index import Index, lance_files
from power_cut import Disk

QUERY = naive.some_sequences(1)[0]


def present(index):
    return {hit.id for hit in index.search(QUERY, 10_000)}


def stored(folder):
    """All ids, with every column read."""
    table = Index.open(folder)._store._dataset.to_table()
    return set(table.column("id").to_pylist())


def manifests(folder):
    return sorted((folder / "store" / "sequences.lance" / "_versions").glob("*.manifest"))  # the newest one first


@pytest.fixture
def disk(monkeypatch):
    return Disk(monkeypatch)


def named(prefix, count):
    return {f"{prefix}{i}" for i in range(count)}


def changes(index):
    """Changes of all kinds; after each the ids that must be there."""
    yield "create", named("s", 30)
    index.add(naive.some_sequences(5, seed=1, prefix="a"))
    yield "add", named("s", 30) | named("a", 5)
    index.upsert(naive.some_sequences(7, seed=2, prefix="a"))
    yield "upsert", named("s", 30) | named("a", 7)
    index.remove(["s0", "a1"])
    left = named("s", 30) | named("a", 7) - {"a1"}
    yield "remove", left - {"s0"}
    index.compact()
    yield "compact", left - {"s0"}
    index.add(naive.some_sequences(5, seed=3, prefix="b"))
    yield "add after compact", left - {"s0"} | named("b", 5)


def test_what_is_acknowledged_is_synced_and_survives(tiny, tmp_path, disk):
    folder = tmp_path / "new" / "index"
    for change, expected in changes(Index.create(tiny, folder, naive.some_sequences(30))):
        assert not disk.unsafe(folder), change
        assert disk.names(folder.parent)
        for names in (False, True):
            copy = disk.cut(folder, tmp_path / f"{change} {names}", names)
            assert stored(copy) == present(Index.open(copy)) == expected, change


def test_a_cut_at_any_sync_loses_nothing_acknowledged(tiny, tmp_path, disk):
    """The copies are made in the middle of a change: all of it may be there, or nothing."""
    folder, copies, expected, one_at_a_time = tmp_path / "index", [], [], threading.Lock()

    def cut():
        with one_at_a_time:
            names = len(copies) % 2 == 1
            copies.append((disk.cut(folder, tmp_path / f"cut{len(copies)}", names), len(expected) - 1))

    for _, ids in changes(Index.create(tiny, folder, naive.some_sequences(30))):
        expected.append(ids)
        disk.at_sync = cut
    disk.at_sync = None
    assert len(copies) > 40
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")  # other tests may have seen the same warning before
        for copy, step in copies:
            found = stored(copy)
            assert found == present(Index.open(copy))
            assert found in (expected[step], expected[step + 1])
            Index.open(copy).add(naive.some_sequences(3, seed=9, prefix="next"))
            assert stored(copy) == found | named("next", 3)
    assert told  # some copies had to go back


def test_the_next_writer_syncs_what_a_killed_one_left(tiny, tmp_path, disk, monkeypatch):
    folder = tmp_path / "index"
    index = Index.create(tiny, folder, naive.some_sequences(30))
    with monkeypatch.context() as patch:
        patch.setattr(lance_files.LanceFiles, "sync", lambda *_: None)
        patch.setattr(lance_files.LanceFiles, "mark", lambda *_: None)
        index.add(naive.some_sequences(5, seed=1, prefix="a"))
    assert disk.unsafe(folder)
    Index.open(folder).add(naive.some_sequences(5, seed=1, prefix="b"))
    assert not disk.unsafe(folder)


@pytest.mark.parametrize("left", [0, 40, -1])
def test_an_unreadable_manifest_is_a_warning(tiny, tmp_path, left):
    folder = tmp_path / "index"
    index = Index.create(tiny, folder, naive.some_sequences(30))
    index.add(naive.some_sequences(5, seed=1, prefix="a"))
    assert len(present(index)) == 35
    newest = manifests(folder)[0]
    content = newest.read_bytes()
    newest.write_bytes(content[:left] if left >= 0 else bytes(len(content)))
    with pytest.warns(UserWarning, match=r"version 4 cannot be read, .* went back to version 3, .*damaged is kept"):
        opened = Index.open(folder)
    assert present(opened) == named("s", 30)
    assert newest.with_suffix(".damaged").is_file()
    opened.add(naive.some_sequences(5, seed=1, prefix="b"))
    assert present(opened) == stored(folder) == named("s", 30) | named("b", 5)
    serials = opened._store._dataset.to_table().column("nsr_serial").to_pylist()
    assert max(serials) == (4 << 32) + 4  # not those of the lost rows, which a search structure may hold


def test_an_index_without_a_readable_manifest_is_left_as_it_is(tiny, tmp_path):
    folder = tmp_path / "index"
    Index.create(tiny, folder, naive.some_sequences(30))
    for manifest in manifests(folder):
        manifest.write_bytes(b"")
    before = manifests(folder)
    with pytest.raises(UserError, match="no version can be read; restore a copy"):
        Index.open(folder)
    assert manifests(folder) == before


def test_an_index_without_a_note_of_what_was_synced_opens(tiny, tmp_path, disk):
    folder = tmp_path / "index"
    Index.create(tiny, folder, naive.some_sequences(30))
    (folder / "store" / "synced.json").unlink()
    disk.files.clear()
    assert len(present(Index.open(folder))) == 30
    Index.open(folder).add(naive.some_sequences(5, seed=1, prefix="a"))
    assert not [path for path in disk.unsafe(folder) if "store" in path.parts]


def test_saving_a_model_is_synced(tiny, tmp_path, disk):
    for folder in (tmp_path / "model", tmp_path / "model", tmp_path / "below" / "there" / "model"):
        tiny.save(folder)
        assert not disk.unsafe(folder)
        assert not [
            above for above in folder.parents if above.is_relative_to(tmp_path / "below") and disk.unsafe(above)
        ]
