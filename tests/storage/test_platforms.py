"""Other platforms, simulated: what Windows lacks is taken away, and folders cannot be exchanged in one step."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from neuroseqret.storage import exchange, files, sync

WITHOUT_POSIX = """
import importlib, os, pkgutil, sys

for name in ("fcntl", "resource", "termios", "pwd", "grp", "pty"):
    sys.modules[name] = None  # importing it raises an ImportError
import filelock, numpy, torch, pyarrow  # they are at home on every platform, in other versions of themselves

for name in ("fork", "register_at_fork", "getuid", "geteuid", "statvfs", "sched_getaffinity"):
    if hasattr(os, name):
        delattr(os, name)
import neuroseqret

wrong = []
for module in pkgutil.walk_packages(neuroseqret.__path__, "neuroseqret."):
    if module.name == "neuroseqret.__main__":
        continue
    try:
        importlib.import_module(module.name)
    except Exception as error:
        wrong.append(f"{module.name}: {type(error).__name__}: {error}")
print("\\n".join(wrong))
"""


def test_every_module_can_be_imported_without_posix() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_POSIX], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == ""


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A platform that cannot lock folders and cannot exchange two of them in one step."""
    monkeypatch.setattr(exchange, "fcntl", None)
    monkeypatch.setattr(exchange, "_exchange_at_once", lambda *_: False)


def write(folder: Path, text: str) -> None:
    with files.new_folder(folder, "note") as temporary:
        (temporary / "note").write_text(text)


@pytest.mark.usefixtures("elsewhere")
def test_folders_are_replaced_and_nothing_is_left(tmp_path: Path) -> None:
    for text in ("first", "second"):
        write(tmp_path / "made", text)
        assert (tmp_path / "made" / "note").read_text() == text
        assert os.listdir(tmp_path) == ["made"]


@pytest.mark.usefixtures("elsewhere")
def test_what_a_killed_process_left_is_put_right_and_what_lives_is_left_alone(tmp_path: Path) -> None:
    old = tmp_path / f".made-abcdefgh{exchange.OLD}"
    (old / "folder").mkdir(parents=True)
    (old / "folder" / "note").write_text("kept")
    (tmp_path / f".made-abcdefgh{exchange.NEW}").mkdir()
    with exchange.hidden_folder(tmp_path / "made") as living:
        exchange.recover(tmp_path / "made")
        assert living.is_dir()
    assert (tmp_path / "made" / "note").read_text() == "kept"
    assert os.listdir(tmp_path) == ["made"]


def test_windows_syncs_files_and_no_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = os.open
    monkeypatch.setattr(sync.os, "name", "nt")
    monkeypatch.setattr(sync.os, "open", lambda path, flags, *rest: opened.append((path, flags)) or real(path, flags))
    (tmp_path / "file").write_text("x")
    sync.sync_file(tmp_path / "file")
    sync.sync_folder(tmp_path)
    monkeypatch.undo()
    assert opened == [(tmp_path / "file", os.O_RDWR)]


SPAWNED = """
import multiprocessing, sys
from pathlib import Path
from neuroseqret.storage.lock import held

def try_lock(file):
    with held(Path(file), wait=False) as mine:
        return mine

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        with held(Path(sys.argv[1])):
            print(pool.apply(try_lock, [sys.argv[1]]))
        print(pool.apply(try_lock, [sys.argv[1]]))
"""


def test_locks_hold_between_spawned_processes(tmp_path: Path) -> None:
    (tmp_path / "spawned.py").write_text(SPAWNED)
    command = [sys.executable, str(tmp_path / "spawned.py"), str(tmp_path / "lock")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.split() == ["False", "True"], done.stderr
