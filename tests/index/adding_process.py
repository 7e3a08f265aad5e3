"""A process that forks others which add to an index until they are killed; the durability tests talk to it.

It imports everything once and never opens an index itself, so that each fork starts in milliseconds. Protocol, one
line each way: `kill FOLDER SEED FILE` starts a fork that adds, replaces, searches and compacts in a loop and appends
what was acknowledged to the file, kills it at a random moment and answers `killed`; `pair FOLDER` lets two forks add at
the same time and answers `done`; an empty line ends it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from pathlib import Path

from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.index import Index, reader
from neuroseqret.index.as_written import hashes_of


def acknowledge(file, ids):
    with open(file, "a") as stream:
        stream.write("".join(f"{name}\n" for name in ids))


def add_for_ever(folder, seed, acknowledged):
    reader.REBUILD_ROWS = 40  # so that the search structure is rebuilt often, and killed in the middle
    index = Index.open(folder)
    for turn in range(100_000):
        batch = some_sequences(7, seed=1000 * seed + turn, prefix=f"k{seed}-{turn}-")
        index.add(batch)
        acknowledge(acknowledged, batch.ids.to_pylist())
        index.search(batch[0])
        if turn % 5 == 2:
            index.upsert(batch[:3])
        if turn % 7 == 3:
            index.compact()


def kill_once(folder, seed, acknowledged):
    child = os.fork()
    if child == 0:
        try:
            add_for_ever(folder, seed, acknowledged)
        finally:
            os._exit(1)
    before = Path(acknowledged).stat().st_size
    while Path(acknowledged).stat().st_size == before:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return "failed"
        time.sleep(0.005)
    time.sleep(random.Random(seed).uniform(0, 0.4))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "killed"


def add_in_pair(folder):
    children = []
    for name in ("a", "b"):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                index = Index.open(folder)
                own, both = some_sequences(60, seed=ord(name), prefix=name), some_sequences(60, seed=77, prefix="both")
                for begin in range(0, 60, 6):
                    index.add(own[begin : begin + 6])
                    index.add(both[begin : begin + 6])
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    return "done" if all(os.waitpid(child, 0)[1] == 0 for child in children) else "failed"


def warm_up():
    """Load the compiled kernels before forking; no store is opened here."""
    batch = some_sequences(2)
    hashes_of(batch)
    vectors = TinyEmbedder().embed(batch)
    ExhaustiveFinder(vectors).best(vectors[0], 1)


def main():
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"  # not on import: the tests' other processes import this file
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words:
            break
        command, folder, *rest = words
        answer = kill_once(folder, int(rest[0]), rest[1]) if command == "kill" else add_in_pair(folder)
        print(answer, flush=True)


if __name__ == "__main__":
    main()
