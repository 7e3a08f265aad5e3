"""Rounds of torture: each gives a fresh index to a process that comes to harm in a change, and looks at what is left.

A round is named by its kind of harm, the change, and a number that says at which call the harm comes:

    kill    kill -9 just before the call
    cut     kill -9 and a power cut: what was not synced is lost (see `power`)
    fail    the call fails with EIO, ENOSPC, EROFS or EACCES; in every second lap all later calls fail too
    clock   the clock goes back by a day before every change
    gone    the folder is removed while the index is open

What was acknowledged has to be there, all of it and once; what was not is there completely or not at all; a search
finds exactly what is stored, before and after a rebuild from nothing.
"""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from commanded_process import commanded
from naive import index as naive
from neuroseqret import methods
from neuroseqret.feedback.judgements import Judgements
from neuroseqret.index import Index
from torture.power import WAYS, PowerCut

HERE = Path(__file__).resolve().parent
CHANGES = ("add", "upsert", "remove", "compact", "rebuild", "save", "create", "feedback", "checkpoint")
VISIBLE = ("add", "upsert", "remove", "save", "create", "feedback", "checkpoint")  # changes that a user sees
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES)
CELLS = [(kind, change) for kind in ("kill", "cut", "fail") for change in CHANGES]
CELLS += [("clock", "all"), ("gone", "all")]


class Torture:
    """A process that is harmed, the index that every round starts from, and what a change makes of it."""

    def __init__(self, send: Callable[..., str], room: Path) -> None:
        self.send, self.room, self.template = send, room, room / "template"
        methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
        index = Index.create(naive.TinyEmbedder(), self.template / "index", naive.some_sequences(20))
        index.remove("s5")
        naive.TinyEmbedder().save(self.template / "model")
        Judgements(index.folder).append({"id": "s0"}, [("s3", True)])
        self.before = self._state(self._fresh())
        self._after: dict[str, tuple[int, object]] = {}

    def after(self, change: str) -> tuple[int, object]:
        """Return the number of a change's calls, and the state after it."""
        if change not in self._after:
            folder = self._fresh()
            done = self.send("change", change, 0, folder)
            assert done.startswith("done "), done
            self._after[change] = int(done.split()[1]), self._state(folder)
            assert (self._after[change][1] != self.before) == (change in VISIBLE), change
        return self._after[change]

    def round(self, kind: str, change: str, number: int) -> str:
        """Play one round and return its outcome; an `AssertionError` says what went wrong."""
        if change == "all":
            answer = self.send(kind, self._fresh())
            assert answer == "done", answer
            if kind == "clock":
                self._state(self.room / "round" / "index")
            return "done"
        calls, after = self.after(change)
        lap, call = number // (calls + 1), number % (calls + 1) + 1  # the last call of a lap is after the change
        folder = self._fresh()
        if kind == "cut":
            answer = self._cut(change, call, lap, number)
            folder = self.room / "cut" / "index"
        else:
            harm = (ERRORS[number % len(ERRORS)], lap % 2) if kind == "fail" else ()
            answer = self.send("change", change, call, folder, *harm)
        found, outcome = self._state(folder), answer.split(" ")[0]
        assert outcome in ("done", "killed", "refused"), answer
        assert found == after if outcome == "done" else found in (self.before, after), (call, answer, found)
        return outcome

    def _cut(self, change: str, call: int, lap: int, seed: int) -> str:
        for name in ("journal", "cut"):
            shutil.rmtree(self.room / name, ignore_errors=True)
        power = PowerCut(self.room / "round", self.room / "journal")
        answer = self.send("cut", change, call, self.room / "round" / "index", self.room / "journal")
        power.leave(self.room / "cut", WAYS[lap % len(WAYS)], seed)
        return answer

    def _fresh(self) -> Path:
        shutil.rmtree(self.room / "round", ignore_errors=True)
        shutil.copytree(self.template, self.room / "round")
        return self.room / "round" / "index"

    def _state(self, folder: Path) -> object:
        answer = self.send("look", folder)
        assert answer.startswith("sound "), answer
        return json.loads(answer.removeprefix("sound "))


@contextmanager
def torture() -> Iterator[Torture]:
    """Start the process; rounds are in memory where that is possible, since what a disk keeps is simulated."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        room = Path(folder)
        shim = room / "faults.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "faults.c", "-ldl"], check=True)
        with commanded(HERE / "torture_process.py", LD_PRELOAD=str(shim)) as send:
            yield Torture(send, room)
