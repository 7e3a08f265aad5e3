"""A process that opens an index and then forks children that try to use one; the fork tests start it.

It prints one line per attempt: its name and what came of it.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from pathlib import Path

from naive.index import TinyEmbedder, some_sequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index


def attempts(index, folder):
    corpus, model = some_sequences(5, seed=3, prefix="new"), TinyEmbedder()
    return {
        "add": lambda: index.add(corpus),
        "upsert": lambda: index.upsert(corpus),
        "remove": lambda: index.remove("a"),
        "compact": index.compact,
        "refresh": index.refresh,
        "search": lambda: index.search(corpus[0]),
        "get": lambda: index.get("a"),
        "len": lambda: len(index),
        "info": index.info,
        "open": lambda: Index.open(folder / "index", model),
        "create": lambda: Index.create(model, folder / "other"),
    }


def try_in_child(name, attempt):
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0, name
        return
    signal.alarm(20)  # ends a child that hangs
    try:
        attempt()
        print(name, "done", flush=True)
    except UserError as error:
        print(name, error, flush=True)
    finally:
        os._exit(0)


def main():
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    index = Index.create(TinyEmbedder(), folder / "index", some_sequences(20))
    for name, attempt in attempts(index, folder).items():
        try_in_child(name, attempt)
    index.add(some_sequences(5, seed=4, prefix="late"))
    print("parent", len(index), flush=True)


if __name__ == "__main__":
    main()
