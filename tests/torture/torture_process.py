"""A process that forks others, which change an index and come to harm; the torture tests talk to it.

It imports everything once and opens no index itself, so that a fork is cheap. One line each way:

    change NAME CALL FOLDER [ERRNO LASTING]   `killed`, `refused` or `done CALLS`; call 0 does no harm
    cut NAME CALL FOLDER JOURNAL              the same, and what was synced is written to the journal
    look FOLDER                               `sound` and the state as JSON, or what is wrong
    clock FOLDER, gone FOLDER                 `done`, or what is wrong

An empty line ends it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import warnings
from functools import partial
from pathlib import Path

import lance  # noqa: F401  (before forking: it takes a quarter of a second)
import torch

from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.errors import UserError
from neuroseqret.feedback.judgements import Judgements
from neuroseqret.index import Index
from neuroseqret.index.rows import hashes_of
from neuroseqret.training.checkpoint import Checkpoint, LoopState
from neuroseqret.training.log import TrainingLog

SHIM = ctypes.CDLL(None)  # where the preloaded library is found
QUERIES = some_sequences(3, seed=9, prefix="q")
CHANGES = {
    "add": lambda index: index.add(some_sequences(5, seed=1, prefix="a")),
    "upsert": lambda index: index.upsert(some_sequences(4, seed=2)),
    "remove": lambda index: index.remove(["s3", "s9"]),
    "compact": lambda index: index.compact(grace=0),
    "rebuild": lambda index: index._reader.rebuild(),
    "save": lambda index: TinyEmbedder(dimension=8).save(index.folder.parent / "model"),
    "create": lambda index: Index.create(TinyEmbedder(), index.folder.parent / "new", some_sequences(6)),
    "feedback": lambda index: Judgements(index.folder).append({"id": "s1"}, [("s2", True), ("s4", False)], "u"),
    "checkpoint": lambda index: checkpoint(index.folder.parent, save=8),
}


def checkpoint(folder, save=None):
    """Save a checkpoint of so many steps, or return the steps of the one that is there."""
    module, log = torch.nn.Linear(2, 2), TrainingLog()
    optimizer, kept = torch.optim.SGD(module.parameters(), 0.1), Checkpoint(folder / "checkpoint", "key")
    if save is None:
        return kept.resume("phase", module, optimizer, log).step
    kept.save("phase", LoopState(step=save), module, optimizer, log)
    return save


def answers(index):
    return [[(hit.id, hit.score) for hit in hits] for hits in index.search(QUERIES, 100)]


def change(name, call, folder, number=0, lasting=0, journal=None):
    """Make a change and come to harm at a call; a `UserError` of one line is how it may be refused."""
    if journal is not None:
        SHIM.torture_record(str(journal).encode())
    index = Index.open(folder)
    index.search(QUERIES[0])
    if number:
        SHIM.torture_fail(ctypes.c_long(call), number, lasting)
    else:
        SHIM.torture_arm(ctypes.c_long(call))
    try:
        CHANGES[name](index)
    except UserError as error:
        SHIM.torture_disarm()
        return f"failed: several lines: {error}" if "\n" in str(error) else f"refused {error}"
    return f"done {SHIM.torture_disarm()}"


def clock(folder):
    """The clock goes back by a day before every change: each of them holds."""
    index = Index.open(folder)
    for day, name in enumerate(["add", "upsert", "remove", "compact", "rebuild"], 1):
        SHIM.torture_clock(ctypes.c_long(-86400 * day))
        CHANGES[name](index)
        if answers(index) != answers(Index.open(folder)):
            return f"after {name} the open index does not see what is stored"
    return "done"


def gone(folder):
    """The folder is removed while the index is open: every verb gives data or one line."""
    index = Index.open(folder)
    index.search(QUERIES[0])
    shutil.rmtree(folder)
    for name in ("search", "add", "upsert", "remove", "compact", "rebuild", "feedback"):
        try:
            answers(index) if name == "search" else CHANGES[name](index)
        except UserError as error:
            if "\n" in str(error):
                return f"{name}: {error}"
            continue
        if name in ("add", "upsert", "remove", "feedback"):
            return f"{name} was acknowledged, but there is no folder"
    return "done"


def look(folder):
    """Everything that is there must be sound, found by a search, and the same after a rebuild; and it can go on."""
    warnings.simplefilter("ignore")
    index = Index.open(folder)
    index._store.refresh()
    stored = [row for b in index._store.scan(["id", "times"]) for row in b.to_pylist()]
    found, flaws = answers(index), index.check()
    if flaws or len({row["id"] for row in stored}) != len(stored):
        return f"flaws {flaws}"
    shutil.rmtree(Path(folder, "hot"), ignore_errors=True)
    if answers(Index.open(folder)) != found or {name for name, _ in found[0]} != {row["id"] for row in stored}:
        return "a search does not find what is stored"
    index.add(some_sequences(1, prefix="next"))
    if len(index) != len(stored) + 1:
        return "nothing can be added"
    above = Path(folder).parent
    state = {row["id"]: row["times"][0] for row in stored}
    state["model"] = methods.load(above / "model").embed(QUERIES).shape[1]
    state["new"] = len(Index.open(above / "new")) if (above / "new").exists() else None
    state["feedback"] = [one.id for one in Judgements(Path(folder)).latest()]
    state["checkpoint"] = checkpoint(above)
    return "sound " + json.dumps(state)


def forked(work):
    """Return what a fork answers; `killed` if it died."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = work()
        except BaseException as error:
            answer = f"failed {type(error).__name__} {error}"
        SHIM.torture_disarm()
        os.write(writing, answer.replace("\n", " ").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as stream:
        answer = stream.read()
    os.waitpid(child, 0)
    return answer or "killed"


def main():
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    vectors = TinyEmbedder().embed(QUERIES)  # loads the compiled kernels before forking
    hashes_of(QUERIES)
    ExhaustiveFinder(vectors).best(vectors[0], 1)
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words:
            break
        verb, given = words[0], words[1:]
        if verb in ("change", "cut"):
            name, call, folder, *more = given
            harm = (
                zip(("number", "lasting"), map(int, more), strict=False) if verb == "change" else [("journal", more[0])]
            )
            work = partial(change, name, int(call), folder, **dict(harm))
        else:
            work = partial({"look": look, "clock": clock, "gone": gone}[verb], *given)
        answer = forked(work)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
