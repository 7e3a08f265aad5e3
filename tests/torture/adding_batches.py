"""Adds numbered batches to an index, and says after each one that it is acknowledged: PLACE FIRST."""

from __future__ import annotations

import sys

from naive.index import some_sequences
from neuroseqret import Index

ROWS = 20  # of a batch


def batch(number: int):
    """Return the batch of a number."""
    return some_sequences(ROWS, seed=number, prefix=f"b{number}-")


if __name__ == "__main__":
    index = Index.open(sys.argv[1])
    for number in range(int(sys.argv[2]), 1_000_000):
        index.add(batch(number))
        print(number, flush=True)
