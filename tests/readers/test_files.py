"""Where things are kept."""

from __future__ import annotations

from pathlib import Path

from neuroseqret.readers import files


def test_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("NEUROSEQRET_CACHE", str(tmp_path / "mine"))
    assert files.cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("NEUROSEQRET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(files.sys, "platform", "linux")
    assert files.cache_folder() == tmp_path / "neuroseqret"
    monkeypatch.setattr(files.sys, "platform", "darwin")
    assert files.cache_folder() == Path.home() / "Library" / "Caches" / "neuroseqret"
