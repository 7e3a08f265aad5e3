"""Where things are kept, and with which rights."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import files, read


def test_what_is_written_has_the_mode_of_any_new_file(tmp_path):
    mask = os.umask(0o027)
    try:
        with files.new_file(tmp_path / "file") as path:
            path.write_text("x")
        with files.new_folder(tmp_path / "folder", "marker") as path:
            (path / "marker").write_text("x")
    finally:
        os.umask(mask)
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("file", "folder")] == ["0o640", "0o750"]


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
