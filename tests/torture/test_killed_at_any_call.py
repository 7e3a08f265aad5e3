"""kill -9 just before any call that changes the file system: what was acknowledged is there, all of it or nothing.

`make test` tries some calls of each change. `NEUROSEQRET_TORTURE=1` tries every one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from commanded_process import commanded
from naive import index as naive
from neuroseqret.index import Index

HERE = Path(__file__).resolve().parent
EVERY = bool(os.environ.get("NEUROSEQRET_TORTURE"))
SOME = 3  # calls per change in the short form


@pytest.fixture(scope="module")
def send(tmp_path_factory):
    """Sends a command to the torture process and gives its answer."""
    if shutil.which("gcc") is None or not sys.platform.startswith("linux"):
        pytest.skip("a C compiler and Linux are needed")
    shim = tmp_path_factory.mktemp("shim") / "kill_at_call.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "kill_at_call.c", "-ldl"], check=True)
    with commanded(HERE / "torture_process.py", LD_PRELOAD=str(shim)) as send:
        yield send


@pytest.fixture
def template(tmp_path, monkeypatch):
    from neuroseqret import methods

    monkeypatch.setitem(methods.MODELS, "tiny", "naive.index:TinyEmbedder")
    index = Index.create(naive.TinyEmbedder(), tmp_path / "template" / "index", naive.some_sequences(20))
    index.remove("s5")
    naive.TinyEmbedder().save(tmp_path / "template" / "model")
    return tmp_path / "template"


def state(answer):
    assert answer.startswith("sound "), answer
    return json.loads(answer.removeprefix("sound "))


@pytest.mark.parametrize("change", ["add", "upsert", "remove", "compact", "rebuild", "save", "create"])
def test_all_or_nothing(send, template, tmp_path, change):
    def fresh():
        shutil.rmtree(tmp_path / "round", ignore_errors=True)
        shutil.copytree(template, tmp_path / "round")
        return tmp_path / "round" / "index"

    before = state(send("look", fresh()))
    done = send("change", change, 0, fresh())
    assert done.startswith("done "), done
    calls, after = int(done.split()[1]), state(send("look", tmp_path / "round" / "index"))
    assert calls > 5
    assert (before != after) == (change in ("add", "upsert", "remove"))
    killed = 0
    for call in range(1, calls + 1) if EVERY else {1 + i * (calls - 1) // (SOME - 1) for i in range(SOME)}:
        answer = send("change", change, call, fresh())
        found = state(send("look", tmp_path / "round" / "index"))
        assert found == after if answer.startswith("done") else found in (before, after), (call, answer)
        killed += answer == "killed"
    assert killed
    print(f"{change}: {calls} calls, {killed} kills")
