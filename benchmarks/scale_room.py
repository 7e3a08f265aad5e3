"""Where the scale benchmark works: corpora and indexes in a folder, made once; how its cells are saved.

Embeddings are simulated as in `search.py` and mapped from files, so that no process holds them. A sequence has eight
events, since searching does not read events, and a role, for conditions.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

import search
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.index import Index
from search_index import Given

Vectors = npt.NDArray[np.float32]
BATCH, EVENTS, QUERIES = 50_000, 8, 200
ROLES = 10


class Room:
    """A folder for corpora and indexes, and one for results."""

    def __init__(self, folder: Path, results: Path, rows: int) -> None:
        self.folder, self.results, self.rows = folder, results, rows
        folder.mkdir(parents=True, exist_ok=True)

    # ---------------------------------------------------------------- cells

    def cell(self, name: str) -> Path:
        return self.results / f"{name}.json"

    def keep(self, name: str, found: dict[str, Any]) -> None:
        """Save a cell, with the day and how busy the machine was."""
        told = {"last": f"{datetime.now(timezone.utc):%Y-%m-%d}", "load": round(psutil.getloadavg()[0], 1)}
        self.results.mkdir(parents=True, exist_ok=True)
        self.cell(name).write_text(json.dumps({**found, **told}, indent=1) + "\n")
        print(name, json.dumps({**found, **told}), flush=True)

    # ---------------------------------------------------------------- corpora and indexes

    def vectors(self, n: int, dimension: int) -> tuple[Vectors, Vectors]:
        """Return simulated embeddings of corpus and queries."""
        files = [self.folder / f"{what}-{n}-{dimension}.npy" for what in ("queries", "corpus")]
        if not files[1].exists():
            corpus, queries, _, _ = search.simulated(n, QUERIES, 0, dimension)
            for file, made in zip(files, (queries, corpus), strict=True):
                np.save(temporary := file.with_suffix(".new.npy"), made)
                temporary.rename(file)
        return np.load(files[1], mmap_mode="r"), np.load(files[0])

    def given(self, n: int, dimension: int) -> Given:
        """Return a model that looks these embeddings up."""
        return Given(*self.vectors(n, dimension))

    def index(self, n: int, dimension: int) -> Path:
        """Return an index of the simulated embeddings in a folder, with its search structure."""
        place = self.folder / f"index-{n}-{dimension}"
        self.fill(str(place), n, dimension, place.with_suffix(".complete"))
        return place

    def fill(self, place: str, n: int, dimension: int, complete: Path, engine: str | None = None) -> None:
        """Make an index and add everything; the file says that it is complete. A run that was cut off goes on."""
        if complete.exists():
            return
        given = self.given(n, dimension)
        try:
            index = Index.open(place, given)
        except Exception:  # there is none yet
            index = Index.create(given, place, engine=engine)
        for batch in batches(n):
            index.add(batch)
        if engine is None and "://" not in place:
            index.refresh(wait=True)
        complete.touch()


def batches(n: int, size: int = BATCH, seed: int = 0) -> Iterator[EventSequences]:
    """Yield n short sequences whose ids are row numbers."""
    rng = np.random.default_rng(seed)
    for begin in range(0, n, size):
        rows = np.arange(begin, min(begin + size, n))
        times, marks = rng.exponential(size=(len(rows), EVENTS)).cumsum(1), rng.integers(0, 5, len(rows) * EVENTS)
        cuts = np.arange(len(rows) + 1) * EVENTS
        ids = list(map(str, rows))
        made = EventSequences.from_arrays(times.ravel(), marks, cuts, ids=ids, validate=False)
        yield made.with_column("role", [f"r{row % ROLES}" for row in rows.tolist()])


def singles(number: int = QUERIES) -> list[EventSequence]:
    """Return queries whose embeddings `Given` knows."""
    asked = EventSequences.from_lists([([0.0, 1.0], [0, 0])] * number)
    return [asked[row] for row in range(number)]


def in_turn(asks: dict[str, Callable[[int], Any]], rounds: int = 3) -> dict[str, float]:
    """Return the median milliseconds of calls that take turns, so that a slow spell of the machine meets all of them.

    It is wall-clock time: what another process does for a call counts.
    """
    spent: dict[str, list[float]] = {name: [] for name in asks}
    for query in range(rounds * QUERIES + 5):
        for name, ask in asks.items():
            begun = time.perf_counter()
            ask(query % QUERIES)
            spent[name].append(time.perf_counter() - begun)
    return {name: round(1e3 * float(np.median(times[5:])), 4) for name, times in spent.items()}


def apart(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Return what a function returns in a process of its own, and the most memory that it took there."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_answer, args=(theirs, work, *arguments))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv()
    finally:
        process.join()
    return found


def _answer(pipe: Any, work: Callable[..., dict[str, Any]], *arguments: Any) -> None:
    found = work(*arguments)
    pipe.send({**found, "peak_bytes": peak_bytes()})


def peak_bytes() -> int:
    """Return the most memory that this process has held; not ru_maxrss, which a process inherits from its parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def object_store() -> subprocess.Popen[bytes]:
    """Start `moto_server`, make the bucket `scale`, and put its address into the environment."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.1)
    boto3.client("s3", endpoint_url=os.environ["AWS_ENDPOINT_URL"]).create_bucket(Bucket="scale")
    return process
