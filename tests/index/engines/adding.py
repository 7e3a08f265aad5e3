"""Adds sequences to an index, one batch after the other, and says after each one that it is acknowledged."""

from __future__ import annotations

import sys

from naive import index as naive
from neuroseqret import Index, methods
from neuroseqret.index.engines import milvus

if __name__ == "__main__":
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    milvus.TIMEOUT = 5.0
    index = Index.open(sys.argv[1])
    for number in range(int(sys.argv[2]), 1000):
        index.upsert(naive.some_sequences(20, seed=number, prefix=f"b{number}-"))
        print(number, flush=True)
