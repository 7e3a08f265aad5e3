"""Locks: one holder at a time, free again when the holder is done or dies."""

from __future__ import annotations

import subprocess
import sys

import pytest

from neuroseqret.storage.lock import held

HOLDER = "import sys, pathlib; from neuroseqret.storage.lock import held\nwith held(pathlib.Path(sys.argv[1])):\n"


def holder(file, then):
    """A process that holds the lock, says so, and waits for a line; then runs `then`."""
    code = HOLDER + f"    print('mine', flush=True); sys.stdin.readline(); {then}"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "mine\n"
    return process


@pytest.mark.parametrize("then", ["pass", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_lock_has_one_holder_and_is_freed_by_its_end(tmp_path, then):
    with holder(tmp_path / "lock", then) as process:
        with held(tmp_path / "lock", wait=False) as mine:
            assert not mine
        process.communicate("go\n")
    with held(tmp_path / "lock") as mine:
        assert mine


def test_an_error_frees_the_lock(tmp_path):
    with pytest.raises(ValueError, match="no"), held(tmp_path / "lock"):
        raise ValueError("no")
    with held(tmp_path / "lock", wait=False) as mine:
        assert mine
