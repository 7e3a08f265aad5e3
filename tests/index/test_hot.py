from __future__ import annotations

import json
import os
import shutil

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
def test_the_layout_on_disk_stays_so_that_older_indexes_open_without_a_rebuild(tiny, tmp_path, candidates, files):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50), candidates=candidates)
    index.compact()
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    assert sorted(file.name for file in current.iterdir()) == sorted([*EVERY, *files, "meta.json"])
    meta = json.loads((current / "meta.json").read_text())
    assert sorted(meta) == ["check", "checks", "files", "last_serial", "layout", "method"]
    assert (meta["layout"], meta["method"]) == (2, candidates)
    assert sorted(meta["files"]) == sorted([*EVERY, *files])


def test_a_damaged_or_missing_hot_structure_is_rebuilt(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 50)
    corpus, queries = naive.some_sequences(200), naive.some_sequences(5, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus)
    expected = answers(index, queries)
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    with (current / "embeddings.npy").open("r+b") as stream:
        stream.truncate(1000)
    assert answers(Index.open(tmp_path / "index"), queries) == expected
    assert (folder / hot.CURRENT).read_text() != current.name
    assert sorted(p.name for p in folder.iterdir()) == [hot.CURRENT, (folder / hot.CURRENT).read_text()]
    (folder / hot.CURRENT).unlink()
    assert answers(Index.open(tmp_path / "index"), queries) == expected


def _flip(content):
    return bytes([*content[:-20], content[-20] ^ 1, *content[-19:]])


@pytest.mark.parametrize(
    ("file", "damage", "checked"),
    [
        ("meta.json", lambda content: b"[]", True),
        ("meta.json", lambda content: content.replace(b'"last_serial": ', b'"last_serial": 9'), True),
        ("meta.json", lambda content: content.replace(b'"files": {', b'"files": [], "more": {'), True),
        ("embeddings.npy", _flip, True),
        ("codes.npy", _flip, True),
        # In large files and in the first structures there is no checksum, and what fails or has another shape must do.
        ("hash.safetensors", lambda content: b"\xff" * 16 + content[16:], False),
        ("hash.safetensors", lambda content: content.replace(b"bits", b"bitz"), False),
        ("rows.arrow", lambda content: bytes(len(content)), False),
        ("serials.npy", lambda content: content.replace(b"(200,)", b"(100,)"), False),
    ],
)
def test_whatever_is_wrong_with_the_hot_structure_it_is_rebuilt(tiny, tmp_path, monkeypatch, file, damage, checked):
    if not checked:
        monkeypatch.setattr(hot, "_checksum", lambda content: 0)
    corpus, queries = naive.some_sequences(200), naive.some_sequences(5, seed=9)
    monkeypatch.setattr(reader, "REBUILD_ROWS", 50)
    index = Index.create(tiny, tmp_path / "index", corpus, candidates="hamming", hash="hyperplanes", at_least=150)
    expected = answers(index, queries)
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    content = (current / file).read_bytes()
    assert damage(content) != content
    (current / file).write_bytes(damage(content))
    assert answers(Index.open(tmp_path / "index"), queries) == expected
    assert (folder / hot.CURRENT).read_text() != current.name


def test_a_structure_without_checksums_is_read(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    index.compact()
    folder = tmp_path / "index" / "hot"
    file = folder / (folder / hot.CURRENT).read_text() / "meta.json"
    meta = json.loads(file.read_text())
    file.write_text(json.dumps({name: meta[name] for name in ("layout", "method", "last_serial", "files")}))
    assert hot.open_current(folder, 16) is not None
    assert hot.open_current(folder, 17) is None


def test_a_link_in_the_place_of_the_structure_is_not_followed(tiny, tmp_path):
    corpus, query = naive.some_sequences(50), naive.some_sequences(1, seed=9)[0]
    index = Index.create(tiny, tmp_path / "index", corpus)
    index.compact()
    expected = index.search(query)
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "index" / "hot").rename(elsewhere)
    (elsewhere / "build-0123456789ab").mkdir()
    (elsewhere / "photos").mkdir()
    before = sorted(elsewhere.rglob("*"))
    (tmp_path / "index" / "hot").symlink_to(elsewhere)
    assert hot.open_current(tmp_path / "index" / "hot", 16) is None
    opened = Index.open(tmp_path / "index")
    with pytest.warns(UserWarning, match="hot is a symbolic link, which is not followed; remove it"):
        opened.compact()
    assert opened.search(query) == expected
    assert sorted(elsewhere.rglob("*")) == before


def test_only_builds_are_removed_from_the_folder_of_the_structure(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    index.compact()
    folder, elsewhere = tmp_path / "index" / "hot", tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = (folder / hot.CURRENT).read_text()
    (folder / ".build-0123456789ab-x1_y2z3a").mkdir()  # left by a process that was killed
    (folder / ".CURRENT-x1_y2z3a").touch()
    kept = ["build-0123456789abcdef", "build-of-mine", "photos"]
    for name in kept:
        (folder / name).mkdir()
    (folder / "build-ba9876543210").symlink_to(elsewhere)
    (folder / "notes.txt").touch()
    index.compact()
    current = (folder / hot.CURRENT).read_text()
    assert current != first
    left = [hot.CURRENT, current, *kept, "build-ba9876543210", "notes.txt"]
    assert sorted(entry.name for entry in folder.iterdir()) == sorted(left)
    assert elsewhere.is_dir()


@pytest.mark.parametrize("name", ["../elsewhere", "ABSOLUTE", ".", "", "elsewhere", "build-0123456789ab"])
def test_a_pointer_to_anything_but_a_build_counts_as_damage(tiny, tmp_path, name):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(50))
    index.compact()
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    assert hot.open_current(folder, 16) is not None
    for place in (tmp_path / "index" / "elsewhere", folder / "elsewhere"):
        shutil.copytree(current, place)
    (folder / "build-0123456789ab").symlink_to(current.name)
    (folder / hot.CURRENT).write_text(name.replace("ABSOLUTE", str(current)))
    assert hot.open_current(folder, 16) is None
    query = naive.some_sequences(1, seed=9)[0]
    assert Index.open(tmp_path / "index").search(query) == index.search(query)


def test_a_pointer_that_is_a_link_counts_as_damage(tiny, tmp_path):
    Index.create(tiny, tmp_path / "index", naive.some_sequences(50)).compact()
    folder = tmp_path / "index" / "hot"
    (folder / hot.CURRENT).rename(tmp_path / "pointer")
    (folder / hot.CURRENT).symlink_to(tmp_path / "pointer")
    assert hot.open_current(folder, 16) is None


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
            hot_builder.build(tmp_path / "index" / "hot", index._store, index.config)
    built = (tmp_path / "index" / "hot" / hot.CURRENT).read_text() if by_other else None
    assert index.search(query, 50) == expected
    assert index.info()["not_yet_in_structure"] == 0
    if by_other:
        assert (tmp_path / "index" / "hot" / hot.CURRENT).read_text() == built
