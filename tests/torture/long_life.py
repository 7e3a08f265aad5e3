"""One process that searches and commits for a long time: memory, open files and threads stay level, searches stay fast.

    python tests/torture/long_life.py [--searches 1000000] [--commits 10000]

It lives in laps. In the quiet part of a lap one thread searches. In the busy part another thread commits meanwhile: it
adds, replaces and removes few sequences at a time, now and then thousands, and compacts the store, so that the search
structure is rebuilt again and again. What the process holds is noted after every lap and compared with the most of the
first tenth, in which everything is loaded; it is noted once more at rest. The time of every search is kept. Results are
in results/life.json, and docs/reliability.md shows them.
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
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import numpy.typing as npt

import reliability_page
from naive.index import TinyEmbedder, some_sequences
from neuroseqret import methods
from neuroseqret.index import Index
from neuroseqret.storage.memory import give_memory_back

RESULTS = Path(__file__).resolve().parents[2] / "results" / "life.json"
PROCESS = Path("/proc/self")
LAPS = 20
ROWS, BATCH, BULK = 20_000, 10, 2000  # sequences at the start, of a commit, of a commit now and then
BULK_EVERY, COMPACT_EVERY = 50, 250  # commits
PAUSE = 0.0003  # seconds between two searches beside commits: a thread that never rests keeps Python's lock for itself
TURN = 0.0005  # seconds that a thread may compute before another one goes on: what the server sets, Python takes 5 ms
REST = 12.0  # seconds without work, after which threads of the store that are not needed have ended
QUIET, BUSY, REBUILD = 0, 1, 2  # what goes on when a search begins: nothing, commits, commits and a rebuild
PARTS = {QUIET: "quiet", BUSY: "commits", REBUILD: "rebuilds"}
Millis = npt.NDArray[np.float32]


class Figures(NamedTuple):
    """What a process holds, after a number of searches and commits."""

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


class Life:
    """A process that lives with one index."""

    def __init__(self, index: Index, searches: int, commits: int, laps: int = LAPS) -> None:
        self.index, self.searches, self.commits, self.laps = index, searches, commits, laps
        self.queries = some_sequences(64, seed=9, prefix="q")
        self.small = [some_sequences(BATCH, seed=seed, prefix=f"a{seed}-") for seed in range(8)]
        self.other = [some_sequences(BATCH, seed=100 + seed) for seed in range(8)]  # replace s0 to s9
        self.bulk = some_sequences(BULK, seed=200, prefix="b")
        self.millis: Millis = np.full(4 * searches + 10_000, 0, np.float32)  # all of it from the start: nothing grows
        self.during = np.full(len(self.millis), QUIET, np.int8)
        self.searched = self.committed = 0
        self._compacting = False
        self._wrong: BaseException | None = None

    def live(self) -> Iterator[Figures]:
        """Live all laps; give the figures after each."""
        self.index.watch()
        for lap in range(1, self.laps + 1):
            for _ in range(self.searches // (4 * self.laps)):
                self._search(QUIET)
            writer = threading.Thread(target=self._write, args=(self.commits * lap // self.laps,))
            writer.start()
            while writer.is_alive():
                self._search(REBUILD if self._rebuilding() else BUSY)
                time.sleep(PAUSE)
            self.index.refresh(wait=True)
            if self._wrong is not None:
                raise self._wrong
            while self.searched < self.searches * lap // self.laps:
                self._search(QUIET)
            yield holds(self.searched, self.committed)

    def _search(self, part: int) -> None:
        at = self.searched
        begun = time.perf_counter()
        found = self.index.search(self.queries[at % len(self.queries)])
        spent = 1e3 * (time.perf_counter() - begun)
        assert len(found) == 10, found
        if at < len(self.millis):
            self.millis[at], self.during[at] = spent, part
        self.searched += 1

    def _rebuilding(self) -> bool:
        builder = self.index._reader._builder
        return self._compacting or (builder is not None and builder.is_alive())

    def _write(self, until: int) -> None:
        try:
            while self.committed < until:
                self._commit(self.committed)
                self.committed += 1
        except BaseException as error:
            self._wrong = error

    def _commit(self, number: int) -> None:
        """Make one commit. What one adds a later one removes, so the index stays as large as it was."""
        if number % COMPACT_EVERY == COMPACT_EVERY - 1:
            self._compacting = True
            self.index.compact(grace=0)
            self._compacting = False
        if number % BULK_EVERY == BULK_EVERY - 1:
            if number // BULK_EVERY % 2:
                self.index.remove(self.bulk.ids.to_pylist())
            else:
                self.index.add(self.bulk)
            return
        batch = number // 3 % len(self.small)
        match number % 3:
            case 0:
                self.index.add(self.small[batch])
            case 1:
                self.index.upsert(self.other[batch])
            case _:
                self.index.remove(self.small[batch].ids.to_pylist())

    def latency(self) -> dict[str, dict[str, float]]:
        """Return number, median, 99 of 100, and most of the milliseconds of searches, by what went on."""
        known = min(self.searched, len(self.millis))
        found = {}
        for part, name in PARTS.items():
            times = self.millis[:known][self.during[:known] == part]
            if len(times):
                p50, p99 = np.quantile(times, [0.5, 0.99])
                shown = {"p50": p50, "p99": p99, "max": times.max()}
                found[name] = {"searches": len(times), **{key: round(float(value), 3) for key, value in shown.items()}}
        return found


def growth(figures: list[Figures]) -> dict[str, float]:
    """Return how much more the last figures are than the most of the first tenth (at least two samples)."""
    first, last = figures[: max(2, len(figures) // 10)], figures[-1]
    return {
        name: round(getattr(last, name) - max(getattr(one, name) for one in first), 1)
        for name in ("megabytes", "files", "threads")
    }


def _keep(file: Path, found: dict[str, Any], figures: list[Figures]) -> None:
    file.write_text(json.dumps(found | {"figures": [one._asdict() for one in figures]}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=10_000)
    parser.add_argument("--json", type=Path, default=RESULTS, help="file to write the figures to")
    given = parser.parse_args()
    methods.MODELS["tiny"] = "naive.index:TinyEmbedder"
    sys.setswitchinterval(TURN)
    give_memory_back()  # as the server does
    memory, figures, loads, begun = Path("/dev/shm"), list[Figures](), list[float](), time.monotonic()
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        index = Index.create(TinyEmbedder(), Path(folder) / "index", some_sequences(ROWS))
        life = Life(index, given.searches, given.commits)
        for one in life.live():
            figures.append(one)
            loads.append(os.getloadavg()[0])
            found: dict[str, Any] = {
                "last": f"{datetime.now(timezone.utc):%Y-%m-%d}",
                "minutes": round((time.monotonic() - begun) / 60, 1),
                "searches": one.searches,
                "commits": one.commits,
                "load": round(sum(loads) / len(loads), 1),
                "cores": os.cpu_count(),
                "growth": growth(figures),
                "latency": life.latency(),
            }
            print(one, json.dumps(found["latency"]), flush=True)
            _keep(given.json, found, figures)
        time.sleep(REST)
        _keep(given.json, found | {"at_rest": holds(life.searched, life.committed)._asdict()}, figures)
        flaws = index.check()
        assert not flaws, flaws
    if given.json == RESULTS:
        reliability_page.write()


if __name__ == "__main__":
    main()
