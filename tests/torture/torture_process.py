"""A process that forks others, which change an index and come to harm; the torture tests talk to it.

It imports everything once and opens no index itself, so that a fork is cheap. One line each way:

    change NAME CALL FOLDER [ERRNO LASTING]   `killed`, `refused` or `done CALLS SECONDS`; call 0 does no harm
    moment NAME SECONDS FOLDER                the same, killed SECONDS after the change began
    cut NAME CALL FOLDER JOURNAL              the same, and what was synced is written to the journal
    serve CALL FOLDER REQUESTS                `killed ACKNOWLEDGED` or `done CALLS`: a server, and a client that writes
    crowd SEED FOLDER                         what four writers and two readers said, as JSON
    clock FOLDER, gone FOLDER                 `done`, or what is wrong
    look FOLDER                               `sound` and the state as JSON, or what is wrong

`look` is not forked, which would take as long again: a process that looks does nothing else. An empty line ends it.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import shutil
import signal
import sys
import time
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
from neuroseqret.index.as_written import hashes_of
from neuroseqret.training.checkpoint import Checkpoint, LoopState
from neuroseqret.training.log import TrainingLog
from torture import crowd, served

SHIM = ctypes.CDLL(None)  # where the preloaded library is found
QUERIES = some_sequences(3, seed=9, prefix="q")
NEW = some_sequences(6)
CHANGES = {
    "add": lambda index: index.add(some_sequences(5, seed=1, prefix="a")),
    "upsert": lambda index: index.upsert(some_sequences(4, seed=2)),
    "remove": lambda index: index.remove(["s3", "s9"]),
    "compact": lambda index: index.compact(grace=0),
    "rebuild": lambda index: index._reader.rebuild(),
    "save": lambda index: TinyEmbedder(dimension=8).save(index.folder.parent / "model"),
    "create": lambda index: Index.create(TinyEmbedder(), index.folder.parent / "new", NEW),
    "feedback": lambda index: Judgements(index.folder).append({"id": "s1"}, [("s2", True), ("s4", False)], "u"),
    "checkpoint": lambda index: checkpoint(index.folder.parent, save=8),
}


def checkpoint(folder, save=None):
    """Save a checkpoint of this many steps, or return the steps of the one that is there."""
    module, log = torch.nn.Linear(2, 2), TrainingLog()
    optimizer, kept = torch.optim.SGD(module.parameters(), 0.1), Checkpoint(folder / "checkpoint", "key")
    if save is None:
        return kept.resume("phase", module, optimizer, log).step
    kept.save("phase", LoopState(step=save), module, optimizer, log)
    return save


def answers(index):
    return [[(hit.id, hit.score) for hit in hits] for hits in index.search(QUERIES, 100)]


def change(name, call, folder, number=0, lasting=0, journal=None, moment=0.0):
    """Make a change and come to harm at a call; a `UserError` of one line is how it may be refused."""
    if journal is not None:
        SHIM.torture_record(str(journal).encode())
    index = Index.open(folder)
    index.search(QUERIES[0])
    if number:
        SHIM.torture_fail(ctypes.c_long(call), number, lasting)
    else:
        SHIM.torture_arm(ctypes.c_long(call))
    begun = time.perf_counter()
    signal.setitimer(signal.ITIMER_REAL, moment)  # 0: none; the signal ends the process, since nobody handles it
    try:
        CHANGES[name](index)
    except UserError as error:
        SHIM.torture_disarm()
        return f"failed: several lines: {error}" if "\n" in str(error) else f"refused {error}"
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    return f"done {SHIM.torture_disarm()} {time.perf_counter() - begun}"


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
    state["new"] = None
    if (above / "new").exists():
        new = Index.open(above / "new")
        state["new"] = len(new)
        if new.check():
            return "a new index is not sound"
    state["feedback"] = [one.id for one in Judgements(Path(folder)).latest()]
    state["checkpoint"] = checkpoint(above)
    return "sound " + json.dumps(state)


def serve(call, folder, requests):
    """A server that comes to harm while a client writes; the client is this process, which opens no index."""

    def arm():
        SHIM.torture_arm(ctypes.c_long(call))

    child, stream = begin(lambda say: served.serve(folder, arm, SHIM.torture_disarm, say))
    url = stream.readline().strip()
    if not url.startswith("http"):
        return f"{url or 'the server died'} before it was harmed"
    done = served.ask(url, requests)
    os.kill(child, signal.SIGTERM)  # nothing to a server that is dead; one that was too late to answer ends too
    calls = end(child, stream)
    return f"killed {done}" if done < requests or not calls else f"done {calls[0]}"


def play_crowd(seed, folder):
    """Four writers, some of them killed, and two readers, until all writers have ended."""
    stop, doomed = Path(folder).parent / "stop", crowd.doomed(seed)

    def write(number, say):
        if number in doomed:
            SHIM.torture_arm(ctypes.c_long(doomed[number]))
        crowd.write(folder, number, seed, say)

    def read(say):
        crowd.read(folder, QUERIES, {f"s{at}" for at in range(20) if at != 5}, stop, say)

    readers = [begin(read) for _ in range(crowd.READERS)]
    writers = [begin(partial(write, number)) for number in range(crowd.WRITERS)]
    said = [end(*writer) for writer in writers]
    stop.touch()
    return json.dumps({"writers": said, "readers": [end(*reader) for reader in readers]})


def begin(work):
    """Fork; the child does the work, which may say lines. Return its number and where its lines are read."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:

        def say(line):  # a pipe, so this does not count as a call
            os.write(writing, line.replace("\n", " ").encode() + b"\n")

        try:
            work(say)
        except BaseException as error:
            say(f"failed {type(error).__name__} {error}")
        os._exit(0)
    os.close(writing)
    return child, os.fdopen(reading)


def end(child, stream):
    """Return the lines that a fork still says until it ends."""
    with stream:
        lines = stream.read().splitlines()
    os.waitpid(child, 0)
    return lines


def forked(work):
    """Return what a fork answers; `killed` if it died."""

    def answer(say):
        said = work()
        SHIM.torture_disarm()
        say(said)

    return " ".join(end(*begin(answer))) or "killed"


def main():
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    vectors = TinyEmbedder().embed(QUERIES)  # loads the compiled kernels before forking
    hashes_of(QUERIES)
    ExhaustiveFinder(vectors).best(vectors[0], 1)
    # The first optimiser imports much of torch, which looks for a temporary folder: neither is part of a change.
    torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), 0.1)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # what a fork does not look through stays shared with it
    gc.disable()
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words:
            break
        print(answer_to(*words), flush=True)
    os._exit(0)  # taking everything apart in order takes seconds


def answer_to(verb, *given):
    """Return the answer to a line."""
    match verb, given:
        case "look", [folder]:
            return look(folder)
        case "serve", [call, folder, requests]:
            return serve(int(call), folder, int(requests))
        case "crowd", [seed, folder]:
            return play_crowd(int(seed), folder)
        case "change", [name, call, folder, *harm]:
            return forked(partial(change, name, int(call), folder, *map(int, harm)))
        case "cut", [name, call, folder, journal]:
            return forked(partial(change, name, int(call), folder, journal=journal))
        case "moment", [name, seconds, folder]:
            return forked(partial(change, name, 0, folder, moment=float(seconds)))
        case _:
            return forked(partial({"clock": clock, "gone": gone}[verb], *given))


if __name__ == "__main__":
    main()
