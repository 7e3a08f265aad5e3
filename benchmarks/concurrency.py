"""How long does a search take while others write? Quiet, under small adds, bulk adds, upserts; and with more threads.

Vectors are synthetic and embedding costs nothing, so that the index alone is measured. Writers run in a process of
their own. As in a server, the index is watched (`Index.watch`) and threads take short turns; with `--plain` a search
reads new commits itself.
Prints one row per load, with the ratio of its p99 to that of the quiet time.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from neuroseqret import methods
from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequences
from neuroseqret.index import Index
from neuroseqret.models.base import Embedder, Role
from neuroseqret.models.card import ModelCard

EVENTS = 8
LOADS = ("quiet", "adds", "bulk", "upserts")


class Synthetic(Unlearned, Embedder):
    """The first events, put through a fixed random matrix: 64 dimensions."""

    name = "synthetic"

    def __init__(self) -> None:
        super().__init__(NoSettings())
        self.card = ModelCard(model=self.name, method_version=1, marks=1, seed=0, corpus_fingerprint="")
        self.matrix = np.random.default_rng(0).normal(size=(EVENTS, 64)).astype(np.float32)

    def compute_embeddings(self, many: EventSequences, role: Role) -> npt.NDArray[np.float32]:
        if (many.lengths == EVENTS).all():  # as good as nothing, and Python's lock is kept: the index alone is measured
            embedded = (many.times.reshape(-1, EVENTS).astype(np.float32) % 1.0 - 0.5) @ self.matrix
            return embedded / np.sqrt((embedded * embedded).sum(axis=1, keepdims=True))
        vectors = np.zeros((len(many), EVENTS), np.float32)
        inside = np.arange(len(many.times)) - np.repeat(many.offsets[:-1], many.lengths)
        kept = inside < EVENTS
        vectors[np.repeat(np.arange(len(many)), many.lengths)[kept], inside[kept]] = many.times[kept] % 1.0
        embedded = (vectors - 0.5) @ self.matrix
        return np.asarray(embedded / np.linalg.norm(embedded, axis=1, keepdims=True), np.float32)


def some(number: int, seed: int, prefix: str) -> EventSequences:
    times = np.sort(np.random.default_rng(seed).random((number, EVENTS)) + np.arange(EVENTS), axis=1)
    return EventSequences.from_lists(
        [(row, [0] * EVENTS) for row in times.tolist()], ids=[f"{prefix}{i}" for i in range(number)]
    )


def write(folder: str, load: str, seconds: float, made: Any) -> None:
    """Write to the index for some seconds; runs in a process of its own and sends how many commits it made."""
    index, begun, commits = Index.open(folder, Synthetic()), time.monotonic(), 0
    batches = {"adds": 100, "bulk": 8000, "upserts": 100}
    while time.monotonic() - begun < seconds:
        started = time.monotonic()
        prefix = "s" if load == "upserts" else f"{load}{commits}-"
        index.add(some(batches[load], commits, prefix), upsert=load == "upserts")
        commits += 1
        if load != "bulk":
            time.sleep(max(0.0, 0.1 - (time.monotonic() - started)))
    made.send(commits)


def timed_searches(index: Index, queries: EventSequences, seconds: float) -> Iterator[float]:
    end, at = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        begun = time.perf_counter()
        index.search(queries[at % len(queries)])
        yield time.perf_counter() - begun
        at += 1
        time.sleep(0.002)


def throughput(index: Index, queries: EventSequences, threads: int, seconds: float) -> float:
    """Return the searches per second of all threads together."""
    counts, end = [0] * threads, time.monotonic() + seconds

    def search(number: int) -> None:
        while time.monotonic() < end:
            index.search(queries[(number + counts[number]) % len(queries)])
            counts[number] += 1

    running = [threading.Thread(target=search, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return sum(counts) / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="per load")
    parser.add_argument("--plain", action="store_true", help="do not watch the index")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    options = parser.parse_args()
    methods.MODELS["synthetic"] = f"{Path(__file__).stem}:Synthetic"
    found: dict[str, Any] = {"rows": options.rows}
    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Synthetic(), Path(folder, "index"), some(options.rows, 1, "s"))
        queries = some(64, 2, "q")
        index.search(queries)
        if not options.plain:
            index.watch(apart=True)
        found["searches_per_second"] = {n: round(throughput(index, queries, n, 3.0)) for n in (1, 2, 8)}
        print("searches per second by threads:", found["searches_per_second"], flush=True)
        if not options.plain:
            sys.setswitchinterval(0.0005)
        spawn = multiprocessing.get_context("spawn")
        for load in LOADS:
            receiver, sender = spawn.Pipe(False)
            writer = spawn.Process(target=write, args=(str(index.folder), load, options.seconds, sender))
            if load != "quiet":
                writer.start()
                time.sleep(3.0)  # it imports everything first
            spent = 1e3 * np.array(list(timed_searches(index, queries, options.seconds)))
            commits = 0
            if load != "quiet":
                writer.join()
                commits = receiver.recv()
            index.refresh(wait=True)
            p50, p99 = np.quantile(spent, [0.5, 0.99])
            found[load] = {"searches": len(spent), "p50": p50, "p99": p99, "max": spent.max(), "commits": commits}
            ratio = p99 / found["quiet"]["p99"]
            print(
                f"{load:8} {len(spent):6} searches, {commits:4} commits: p50 {p50:6.2f} ms, p99 {p99:7.2f} ms "
                f"({ratio:.1f}x quiet), max {spent.max():7.1f} ms",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
