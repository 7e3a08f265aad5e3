"""Importing works without a writable folder for numba's compiled functions."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import neuroseqret
from neuroseqret.storage import numba_cache

PACKAGE = Path(neuroseqret.__file__).parent


@pytest.fixture
def read_only(tmp_path):
    """A copy of the package where numba can write nothing: a file is in the way, which stops even the superuser."""
    copy = tmp_path / "site" / "neuroseqret"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(entry for entry in copy.rglob("*") if entry.is_dir())]:
        (folder / "__pycache__").touch()
    return copy


def environment(tmp_path, **more):
    kept = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    return kept | {"HOME": "/dev/null", "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"} | more


@pytest.mark.parametrize("first", ["", "import numba"])
def test_a_read_only_install_without_a_home_can_be_imported(read_only, tmp_path, first):
    program = f"{first}\nimport neuroseqret.datasets.steps, os; print(os.environ['NUMBA_CACHE_DIR'])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path, PYTHONPATH=str(read_only.parent)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    folder = Path(done.stdout.strip())
    assert folder.parent == tmp_path / "temporary"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert list(folder.iterdir())  # numba uses it


def test_nothing_is_changed_if_numba_has_a_folder(read_only, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    numba_cache.ensure_numba_cache(PACKAGE)
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    numba_cache.ensure_numba_cache(read_only)
    assert "NUMBA_CACHE_DIR" not in os.environ
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    numba_cache.ensure_numba_cache(read_only)
    assert os.environ["NUMBA_CACHE_DIR"] == str(tmp_path / "chosen")


def test_a_folder_of_somebody_else_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(numba_cache.tempfile, "tempdir", str(tmp_path))
    folder = numba_cache.private_folder()
    assert numba_cache.private_folder() == folder
    folder.chmod(0o777)
    assert numba_cache.private_folder() != folder
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert numba_cache.private_folder().name != folder.name
