"""Damage to the hot structure: it is seen, nothing outside its folder is touched, and it is rebuilt."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pytest

from naive import index as naive
from neuroseqret.index import Index, hot, reader


def answers(index, queries):
    return [[(hit.id, round(hit.score, 5)) for hit in hits] for hits in index.search(queries, 10)]


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
        # Checksums of large files are not compared at opening; what fails or has another shape must do.
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


def _changed(change):
    """Return a function that replaces the array in a file by `change(array)`."""
    return lambda file: np.save(file, change(np.load(file)))


def _put(place, value):
    """Return a function that puts a value into the array in a file."""

    def change(array):
        array[place] = value
        return array

    return _changed(change)


def _rename_the_ids(file):
    table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
    renamed = table.rename_columns(["ie" if name == "id" else name for name in table.column_names])
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, renamed.schema) as writer:
        writer.write_table(renamed)


def _swap_text_offsets(file):
    """Let the first texts of the column `id` end far outside it."""
    table = pa.ipc.open_file(str(file)).read_all()
    offsets = table.column("id").chunk(0).buffers()[1].to_pybytes()[8:32]
    content = file.read_bytes()
    assert content.count(offsets) >= 1
    file.write_bytes(content.replace(offsets, np.array([1 << 40] * 3).tobytes(), 1))


@pytest.mark.parametrize(
    ("candidates", "file", "damage"),
    [
        ("exhaustive", "rows.arrow", _swap_text_offsets),
        ("exhaustive", "rows.arrow", _rename_the_ids),
        ("exhaustive", "begins.npy", _put(3, 1 << 40)),
        ("exhaustive", "begins.npy", _put(3, -1)),
        ("exhaustive", "lengths.npy", _put(3, 1 << 30)),
        ("exhaustive", "lengths.npy", _put(3, -5)),
        ("exhaustive", "embeddings.npy", _changed(lambda array: array.view(np.int32))),
        ("exhaustive", "embeddings.npy", _changed(np.asfortranarray)),
        ("exhaustive", "serials.npy", _changed(lambda array: array.view(np.float64))),
        ("cells", "cells.npy", _put(2, 1 << 40)),
        ("cells", "cells.npy", _put(2, -1)),
        ("cells", "cells.npy", _put(-1, 100)),
        ("cells", "cells.npy", _put(0, -(1 << 40))),
        ("hamming", "codes.npy", _changed(lambda array: array.view(np.int64))),
        ("buckets", "table_rows.npy", _put((1, 5), 1 << 30)),
        ("buckets", "table_rows.npy", _put((1, 5), -1)),
        ("buckets", "table_offsets.npy", _put((1, 1), 1 << 30)),
        ("buckets", "table_offsets.npy", _put((1, 1), -1)),
        ("buckets", "table_offsets.npy", _put((0, -1), 201)),
        ("buckets", "table_positions.npy", _put((1, 0), 64)),
        ("buckets", "table_positions.npy", _put((1, 0), -1)),
    ],
)
def test_numbers_that_lead_outside_the_arrays_are_seen_at_opening(
    tiny, tmp_path, monkeypatch, candidates, file, damage
):
    monkeypatch.setattr(hot, "_CHECKED_SIZE", -1)  # as if all files were large
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(200), candidates=candidates, hash="rotation")
    index.compact()
    folder = tmp_path / "index" / "hot"
    current = folder / (folder / hot.CURRENT).read_text()
    assert hot.open_current(folder, 16) is not None
    size = (current / file).stat().st_size
    damage(current / file)
    assert (current / file).stat().st_size == size
    assert hot.open_current(folder, 16) is None
    assert hot.verify(folder, 16) == [f"{folder}: cannot be opened; it is built again when a search needs it"]


def test_verify_reads_large_files_too(tiny, tmp_path, monkeypatch):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(200), candidates="cells")
    folder = tmp_path / "index" / "hot"
    assert hot.verify(folder, 16) == []  # nothing is built yet
    index.compact()
    assert hot.verify(folder, 16) == []
    current = folder / (folder / hot.CURRENT).read_text()
    monkeypatch.setattr(hot, "_CHECKED_SIZE", -1)
    for name in ("times.bin", "embeddings.npy", "rounded.npy"):
        content = (current / name).read_bytes()
        (current / name).write_bytes(_flip(content))
        assert hot.open_current(folder, 16) is not None
        (line,) = hot.verify(folder, 16)
        assert line.startswith(f"{current / name}: is not as it was written; delete {folder}")
        (current / name).write_bytes(content)


def test_a_file_of_the_structure_that_is_a_link_counts_as_damage(tiny, tmp_path):
    Index.create(tiny, tmp_path / "index", naive.some_sequences(50)).compact()
    folder = tmp_path / "index" / "hot"
    file = folder / (folder / hot.CURRENT).read_text() / "times.bin"
    file.rename(tmp_path / "times.bin")
    file.symlink_to(tmp_path / "times.bin")
    assert hot.open_current(folder, 16) is None


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
