"""A process that forks others, which change an index and are killed at a chosen call; the torture tests talk to it.

It imports everything once and opens no index itself, so that a fork is cheap. One line each way:
`change NAME N FOLDER` answers `killed`, or `done CALLS` if the change was over before the call (N = 0 never kills);
`look FOLDER` answers `sound` and the stored ids with their first times as JSON, or what is wrong. An empty line
ends it.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
import warnings
from pathlib import Path

import lance  # noqa: F401  (before forking: it takes a quarter of a second)

from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.candidates.exhaustive_finder import ExhaustiveFinder
from neuroseqret.index import Index
from neuroseqret.index.rows import hashes_of

SHIM = ctypes.CDLL(None)  # where the preloaded library is found
QUERIES = some_sequences(3, seed=9, prefix="q")
CHANGES = {
    "add": lambda index: index.add(some_sequences(5, seed=1, prefix="a")),
    "upsert": lambda index: index.upsert(some_sequences(4, seed=2)),
    "remove": lambda index: index.remove(["s3", "s9"]),
    "compact": lambda index: index.compact(grace=0),
    "rebuild": lambda index: index._reader.rebuild(),
    "save": lambda index: TinyEmbedder().save(index.folder.parent / "model"),
    "create": lambda index: Index.create(TinyEmbedder(), index.folder.parent / "new", some_sequences(6)),
}


def answers(index):
    return [[(hit.id, hit.score) for hit in hits] for hits in index.search(QUERIES, 100)]


def change(name, call, folder):
    index = Index.open(folder)
    index.search(QUERIES[0])
    SHIM.torture_arm(ctypes.c_long(call))
    CHANGES[name](index)
    return f"done {SHIM.torture_disarm()}"


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
    for beside, opened in (("model", methods.load), ("new", Index.open)):
        if Path(folder).parent.joinpath(beside).exists():
            opened(Path(folder).parent / beside)
    return "sound " + json.dumps({row["id"]: row["times"][0] for row in stored})


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
    print("ready", flush=True)
    for line in sys.stdin:
        words = line.split()
        if not words:
            break
        if words[0] == "change":
            answer = forked(lambda given=words: change(given[1], int(given[2]), given[3]))
        else:
            answer = forked(lambda given=words: look(given[1]))
        print(answer, flush=True)


if __name__ == "__main__":
    main()
