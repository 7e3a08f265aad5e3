"""Where things are kept, and with which rights."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from neuroseqret.errors import DataError, UserError
from neuroseqret.models.model_folder import HOLDS as OF_MODELS
from neuroseqret.readers import read
from neuroseqret.readers.data_folder import HOLDS as OF_DATA
from neuroseqret.storage import exchange, files
from power_cut import Disk

BESIDE = {kind[0]: kind[1:] for kind in (OF_DATA, OF_MODELS, ("per_query.parquet", "*.run"))}


def write_kind(folder, marker, text, *more):
    with files.new_folder(folder, marker, *BESIDE.get(marker, ())) as path:
        for name in (marker, *more):
            (path / name).write_text(text)


def content(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_what_is_written_has_the_mode_of_any_new_file(tmp_path):
    mask = os.umask(0o027)
    try:
        with files.new_file(tmp_path / "file") as path:
            path.write_text("x")
        with files.new_file(tmp_path / "tensors") as path:
            save_file({"x": np.zeros(3)}, path)  # replaces the file by its own, which is private
        with files.new_folder(tmp_path / "folder", "marker") as path:
            (path / "marker").write_text("x")
    finally:
        os.umask(mask)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
    assert modes == {"file": "0o640", "tensors": "0o640", "folder": "0o750"}


def test_pipes_and_devices_are_neither_read_nor_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with (
        pytest.raises(UserError, match=r"pipe: is a pipe or device; name a file to write"),
        files.new_file(tmp_path / "pipe"),
    ):
        pass
    assert (tmp_path / "pipe").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]
    with pytest.raises(DataError, match=r"pipe: a pipe or device, not a file; save its content to a file first"):
        read(tmp_path / "pipe")


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("NEUROSEQRET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(files.sys, "platform", "linux")
    assert files.cache_folder() == tmp_path / "neuroseqret"
    monkeypatch.setattr(files.sys, "platform", "darwin")
    assert files.cache_folder() == Path.home() / "Library" / "Caches" / "neuroseqret"


@pytest.mark.parametrize(
    ("marker", "more"),
    [
        ("corpus.parquet", ["queries.parquet", "qrels.txt", "meta.json"]),
        ("config.json", ["model.safetensors", "training.jsonl", "training.png"]),
        ("per_query.parquet", ["histogram.run", "my-model-2.run"]),
    ],
)
def test_a_folder_with_something_else_in_it_is_not_replaced(tmp_path, marker, more):
    folder = tmp_path / "folder"
    write_kind(folder, marker, "old", *more)
    write_kind(folder, marker, "new")
    assert content(folder) == {marker: "new"}
    for stranger in ("notes.txt", "raw/original.csv"):
        (folder / stranger).parent.mkdir(exist_ok=True)
        (folder / stranger).write_text("mine")
        before = content(folder)
        with pytest.raises(UserError, match=rf"folder: holds '{stranger.split('/')[0]}', which would be lost; move it"):
            write_kind(folder, marker, "newer")
        assert content(folder) == before
        (folder / stranger).unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_comes_into_the_folder_while_it_is_made_again_stays(tmp_path):
    write_kind(tmp_path / "folder", "config.json", "old")
    with pytest.raises(UserError, match="holds 'notes"), files.new_folder(tmp_path / "folder", "config.json"):
        (tmp_path / "folder" / "notes.txt").write_text("mine")
    assert content(tmp_path) == {"folder/config.json": "old", "folder/notes.txt": "mine"}


def test_the_folder_one_is_in_gets_new_content(tmp_path, monkeypatch):
    write_kind(tmp_path / "folder", "corpus.parquet", "old", "qrels.txt")
    monkeypatch.chdir(tmp_path / "folder")
    write_kind(".", "corpus.parquet", "new", "meta.json")
    assert content(Path()) == content(tmp_path / "folder") == {"corpus.parquet": "new", "meta.json": "new"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_failed_exchange_puts_the_old_folder_back(tmp_path, monkeypatch, fails_at, inside):
    folder = tmp_path / "folder"
    write_kind(folder, "corpus.parquet", "old", "meta.json")
    if inside:
        monkeypatch.chdir(folder)
    calls, replace = [], os.replace

    def failing(source, target):
        calls.append(source)
        if len(calls) == fails_at:
            raise OSError(16, "Device or resource busy")
        replace(source, target)

    monkeypatch.setattr(exchange, "_exchange_at_once", lambda *_: False)
    monkeypatch.setattr(files.os, "replace", failing)
    with pytest.raises(UserError, match=r"cannot be written \(Device or resource busy\)"):
        write_kind("." if inside else folder, "corpus.parquet", "new", "meta.json")
    assert content(tmp_path) == {"folder/corpus.parquet": "old", "folder/meta.json": "old"}
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_place_below_a_file_is_no_place_for_a_folder(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match=r"cannot be written \(.*file is a file\)"):
        files.check_replaceable(tmp_path / "file" / "a" / "b", "config.json")


def test_new_files_and_folders_are_safe_from_a_power_cut(tmp_path, monkeypatch):
    disk = Disk(monkeypatch)
    for _ in range(2):
        with files.new_file(tmp_path / "a" / "b" / "file") as path:
            path.write_text("x")
        with files.new_file(tmp_path / "a" / "tensors") as path:  # as a checkpoint is written
            save_file({"x": np.zeros(3)}, path)
        with files.new_folder(tmp_path / "c" / "folder", "marker", "below") as path:
            (path / "below").mkdir()
            (path / "below" / "more").write_text("y")
            (path / "marker").write_text("x")
        assert not disk.unsafe(tmp_path / "a")
        assert not disk.unsafe(tmp_path / "c")
