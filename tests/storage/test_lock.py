"""Locks: one holder at a time, free again when the holder is done or dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from neuroseqret.errors import UserError
from neuroseqret.storage import lock
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


def test_a_lock_that_stays_taken_is_one_clear_line(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "TIMEOUT", 0.1)
    with holder(tmp_path / "lock", "pass") as process:
        too_long = pytest.raises(UserError, match=f"^{tmp_path}/lock: another process has held this lock .*end it")
        with too_long, held(tmp_path / "lock"):
            raise AssertionError("not reached")
        process.communicate("go\n")
    with held(tmp_path / "lock") as mine:
        assert mine


def test_a_lock_is_taken_as_soon_as_it_is_free(tmp_path):
    with holder(tmp_path / "lock", "import time; time.sleep(0.3)") as process:
        process.stdin.write("go\n")
        process.stdin.flush()
        begin = time.monotonic()
        with held(tmp_path / "lock") as mine:
            assert mine
            assert time.monotonic() - begin < 10


FORKING = """
import os, pathlib, sys, time
from neuroseqret.storage.lock import held
with held(pathlib.Path(sys.argv[1])):
    child = os.fork()
    if child == 0:
        os.close(1)
        time.sleep(60)
        os._exit(0)
    print(child, flush=True)
    {then}
"""


@pytest.mark.parametrize("then", ["pass", "os.kill(os.getpid(), 9)"])
def test_a_child_forked_by_the_holder_does_not_keep_the_lock(tmp_path, then):
    code = [sys.executable, "-c", FORKING.format(then=then), str(tmp_path / "lock")]
    ended = subprocess.run(code, stdout=subprocess.PIPE, text=True, check=False)
    child = int(ended.stdout)
    try:
        with held(tmp_path / "lock", timeout=5) as mine:
            assert mine
    finally:
        os.kill(child, signal.SIGKILL)


LEAVING = """
import os, pathlib, sys
from neuroseqret.storage.lock import held
file = pathlib.Path(sys.argv[1])
parent = os.getpid()
with held(file):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
        with held(file, wait=False) as second:
            print("free" if second else "held")
if os.getpid() != parent:
    os._exit(0)
"""


def test_a_child_that_leaves_the_block_does_not_free_the_lock(tmp_path):
    code = [sys.executable, "-c", LEAVING, str(tmp_path / "lock")]
    assert subprocess.run(code, stdout=subprocess.PIPE, text=True, check=True).stdout == "held\n"
