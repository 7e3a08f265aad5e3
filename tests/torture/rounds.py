"""Rounds of torture: each gives a fresh index to a process that comes to harm in a change, and looks at what is left.

A round is named by its kind of harm, the change, and a number that says at which call the harm comes:

    kill    kill -9 just before the call
    moment  kill at a random moment of the change
    cut     kill -9 and a power cut: what was not synced is lost (see `power`)
    fail    the call fails with EIO, ENOSPC, EROFS or EACCES; in every second lap all later calls fail too
    clock   the clock goes back by a day before every change
    gone    the folder is removed while the index is open

Two changes are many at once: `server` is a server that is killed while a client writes, `crowd` are four writers, some
of them killed, and two readers.

What was acknowledged has to be there, all of it and once; what was not is there completely or not at all; a search
finds exactly what is stored, before and after a rebuild from nothing.
"""

from __future__ import annotations

import errno
import json
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from commanded_process import commanded
from naive import index as naive
from neuroseqret import methods
from neuroseqret.feedback.judgements import Judgements
from neuroseqret.index import Index
from torture import crowd
from torture.power import WAYS, PowerCut
from torture.served import REQUESTS

HERE = Path(__file__).resolve().parent
CHANGES = ("add", "upsert", "remove", "compact", "rebuild", "save", "create", "feedback", "checkpoint")
VISIBLE = ("add", "upsert", "remove", "save", "create", "feedback", "checkpoint")  # changes that a user sees
ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES)
CELLS = [(kind, change) for kind in ("kill", "moment", "cut", "fail") for change in CHANGES]
CELLS += [("clock", "all"), ("gone", "all"), ("kill", "server"), ("kill", "crowd")]
COST = {"crowd": 2}  # how many rounds of another change one round takes


class After(NamedTuple):
    """What a change makes of an index, in how many calls and seconds."""

    calls: int
    seconds: float
    state: dict[str, Any]


class Torture:
    """A process that is harmed, one that looks at what is left, and the index that every round starts from."""

    def __init__(self, send: Callable[..., str], look: Callable[..., str], room: Path) -> None:
        self.send, self.look, self.room, self.template = send, look, room, room / "template"
        methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
        index = Index.create(naive.TinyEmbedder(), self.template / "index", naive.some_sequences(20))
        index.remove("s5")
        naive.TinyEmbedder().save(self.template / "model")
        Judgements(index.folder).append({"id": "s0"}, [("s3", True)])
        self._looks = 0
        self.before = self._state(self._fresh())
        self._after: dict[str, After] = {}
        self._served: list[After] = []

    def after(self, change: str) -> After:
        """Return what a change does if nothing happens to it."""
        if change not in self._after:
            folder = self._fresh()
            answer = self.send("change", change, 0, folder)
            assert answer.startswith("done "), answer
            _, calls, seconds = answer.split()
            self._after[change] = After(int(calls), float(seconds), self._state(folder))
            assert (self._after[change].state != self.before) == (change in VISIBLE), change
        return self._after[change]

    def round(self, kind: str, change: str, number: int) -> str:
        """Play one round and return its outcome; an `AssertionError` says what went wrong."""
        if change == "server":
            return self._server(number)
        if change == "crowd":
            return self._crowd(number)
        if change == "all":
            answer = self.send(kind, self._fresh())
            assert answer == "done", answer
            if kind == "clock":
                self._state(self.room / "round" / "index")
            return "done"
        return self._harmed(kind, change, number)

    def _harmed(self, kind: str, change: str, number: int) -> str:
        """Harm one change: what is left is the state before it or after it."""
        after = self.after(change)
        lap, call = number // (after.calls + 1), number % (after.calls + 1) + 1  # the last of a lap is after the change
        folder = self._fresh()
        if kind == "cut":
            answer = self._cut(change, call, lap, number)
            folder = self.room / "cut" / "index"
        elif kind == "moment":
            answer = self.send(kind, change, random.Random(number).uniform(1e-6, 1.2 * after.seconds), folder)
        else:
            harm = (ERRORS[number % len(ERRORS)], lap % 2) if kind == "fail" else ()
            answer = self.send("change", change, call, folder, *harm)
        outcome = answer.split(" ")[0]
        assert outcome in ("done", "killed", "refused"), answer
        allowed = [after.state] if outcome == "done" else [self.before, after.state]
        found = self._state(folder)
        assert found in allowed, (call, answer, found)
        return outcome

    def _server(self, number: int) -> str:
        """Harm a server at a call: what it acknowledged is there, and perhaps the request that it died in."""
        while len(self._served) <= len(REQUESTS):
            folder = self._fresh()
            answer = self.send("serve", 0, folder, len(self._served))
            assert answer.startswith("done "), answer
            self._served.append(After(int(answer.split()[1]), 0.0, self._state(folder)))
        folder = self._fresh()
        answer = self.send("serve", number % (self._served[-1].calls + 1) + 1, folder, len(REQUESTS))
        outcome, _, value = answer.partition(" ")
        assert outcome in ("done", "killed"), answer
        done, found = int(value) if outcome == "killed" else len(REQUESTS), self._state(folder)
        assert found in [one.state for one in self._served[done : done + 2]], (number, answer, found)
        return outcome

    def _crowd(self, number: int) -> str:
        """Let four writers and two readers work, and kill some writers: every acknowledged step holds."""
        folder = self._fresh()
        answer = self.send("crowd", number, folder)
        said, found = json.loads(answer), self._state(folder)
        assert all(len(lines) == 1 and lines[0].startswith("sound ") for lines in said["readers"]), said["readers"]
        assert {id: first for id, first in found.items() if not id.startswith("w")} == self.before, found
        for writer, lines in enumerate(said["writers"]):
            mine = {id: first for id, first in found.items() if id.startswith(f"w{writer}-")}
            assert mine in crowd.allowed(lines), (number, writer, lines, mine)
        return "killed" if any(len(lines) < 2 * crowd.STEPS for lines in said["writers"]) else "done"

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

    def _state(self, folder: Path) -> dict[str, Any]:
        self._looks += 1
        seen = folder.parent.rename(self.room / f"seen-{self._looks}")  # a name of its own: nothing of it is known
        answer = self.look("look", seen / folder.name)
        shutil.rmtree(seen)
        assert answer.startswith("sound "), answer
        found: dict[str, Any] = json.loads(answer.removeprefix("sound "))
        return found


@contextmanager
def torture() -> Iterator[Torture]:
    """Start the process; rounds are in memory where that is possible, since what a disk keeps is simulated."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        room = Path(folder)
        shim = room / "faults.so"
        subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", shim, HERE / "faults.c", "-ldl"], check=True)
        process, variables = HERE / "torture_process.py", {"LD_PRELOAD": str(shim), "PYTHONWARNINGS": "ignore"}
        with commanded(process, **variables) as send, commanded(process, **variables) as look:
            yield Torture(send, look, room)
