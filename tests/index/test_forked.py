"""An index in a forked process is refused with one line; the process that opened it goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from naive import index as naive
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.storage import lock

HERE = Path(__file__).resolve().parent


def test_a_child_that_was_forked_after_opening_is_refused(tmp_path):
    path = os.pathsep.join([str(HERE.parent), *sys.path])
    code = [sys.executable, str(HERE / "forking_process.py"), str(tmp_path)]
    run = subprocess.run(code, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    *children, parent = (line.partition(" ") for line in run.stdout.splitlines())
    assert len(children) == 11
    for name, _, outcome in children:
        assert outcome.startswith("an index cannot be used in a process that was forked"), name
        assert "'spawn'" in outcome
    assert parent == ("parent", " ", "25")


def test_a_write_that_waits_too_long_for_another_is_one_clear_line(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "TIMEOUT", 0.1)
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(20))
    too_long = pytest.raises(UserError, match=r"write\.lock: another process has held this lock")
    with lock.held(tmp_path / "index" / "write.lock"), too_long:
        index.remove("a")
    assert len(index) == 20
