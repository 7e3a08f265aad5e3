"""One process that searches and commits for a long time: memory, open files and threads stay level.

    python tests/torture/long_life.py [--searches 1000000] [--commits 10000] [--minutes 60]

Each commit adds, replaces or removes some sequences; the store is compacted now and then. Figures are taken at equal
distances and compared with those of the first tenth, in which everything is loaded. Results are in results/life.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.index import Index

RESULTS = Path(__file__).resolve().parents[2] / "results" / "life.json"
PROCESS = Path("/proc/self")
SAMPLES = 20
BATCH, COMPACT_EVERY = 10, 50  # sequences of a commit; commits


class Figures(NamedTuple):
    """What a process holds, after so many searches and commits."""

    searches: int
    commits: int
    megabytes: float
    files: int
    threads: int


def holds(searches: int, commits: int) -> Figures:
    """Return what this process holds now."""
    gc.collect()
    return Figures(searches, commits, round(_megabytes(), 1), len(os.listdir("/dev/fd")), _threads())


def _megabytes() -> float:
    """Return the memory of this process without mapped files, whose pages come and go as the system likes."""
    if not PROCESS.is_dir():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    status = dict(line.split(":", 1) for line in (PROCESS / "status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) / 1024


def _threads() -> int:
    """Return the number of threads, where it can be told with those of the store."""
    return len(os.listdir(PROCESS / "task")) if PROCESS.is_dir() else threading.active_count()


def live(index: Index, searches: int, commits: int, end: float) -> Iterator[Figures]:
    """Search and commit in turn until all is done or the time is over; give figures now and then."""
    queries, per_commit = some_sequences(64, seed=9, prefix="q"), max(1, searches // commits)
    for commit in range(1, commits + 1):
        match commit % 3:
            case 0:
                index.remove([f"a{commit - 2}-{at}" for at in range(BATCH)])
            case 1:
                index.add(some_sequences(BATCH, seed=commit, prefix=f"a{commit}-"))
            case _:
                index.upsert(some_sequences(BATCH, seed=commit))
        if commit % COMPACT_EVERY == 0:
            index.compact(grace=0)
        for at in range(per_commit):
            found = index.search(queries[(commit + at) % len(queries)])
            assert len(found) == 10, found
        if commit % max(1, commits // SAMPLES) == 0 or time.monotonic() > end:
            yield holds(commit * per_commit, commit)
        if time.monotonic() > end:
            return


def growth(figures: list[Figures]) -> dict[str, float]:
    """Return how much more the last figures are than the most of the first tenth (at least two samples)."""
    first, last = figures[: max(2, len(figures) // 10)], figures[-1]
    return {
        name: round(getattr(last, name) - max(getattr(one, name) for one in first), 1)
        for name in ("megabytes", "files", "threads")
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after this long")
    given = parser.parse_args()
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    memory, figures = Path("/dev/shm"), list[Figures]()
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        index = Index.create(TinyEmbedder(), Path(folder) / "index", some_sequences(2000))
        for one in live(index, given.searches, given.commits, time.monotonic() + 60 * given.minutes):
            figures.append(one)
            print(one, flush=True)
            found = {"last": f"{datetime.now(timezone.utc):%Y-%m-%d}", "growth": growth(figures)}
            RESULTS.write_text(json.dumps(found | {"figures": [each._asdict() for each in figures]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
