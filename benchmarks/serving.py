"""The server's figures: searches per second, latency, adding, and a long run with writes beside searches.

    python benchmarks/serving.py [--sequences 100000] [--seconds 20] [--connections 32] [--minutes 0]

A real server process over loopback, and one process of clients. Ratios are to the same index in the same run: the
server without batching (`--window 0`), `Index.search` and `Index.add` in process. `--minutes 10` adds the long run:
80 % of the measured load while another client adds as many sequences as the index holds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import uvloop

import neuroseqret as nsr
from neuroseqret.data.sequences import EventSequences
from neuroseqret.methods.registry import make


def sequences(number: int, seed: int, prefix: str, events: int = 50, marks: int = 5) -> EventSequences:
    """Random sequences of about `events` events, each with its own rate and mixture of marks."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(events // 2, events * 3 // 2, number)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    gaps = rng.exponential(np.repeat(np.exp(rng.normal(0, 0.7, number)), lengths))
    totals = np.cumsum(gaps)
    times = totals - np.repeat(totals[offsets[:-1]] - gaps[offsets[:-1]], lengths)
    favourite = np.repeat(rng.integers(0, marks, number), lengths)
    drawn = np.where(rng.random(len(times)) < 0.5, favourite, rng.integers(0, marks, len(times)))
    return EventSequences.from_arrays(times, drawn, offsets, ids=[f"{prefix}{row}" for row in range(number)])


class Server:
    """`neuroseqret serve` in a process of its own."""

    def __init__(self, index: Path, *options: str) -> None:
        self.log = tempfile.NamedTemporaryFile(suffix=".log")  # noqa: SIM115  # closed with the process
        command = [sys.executable, "-m", "neuroseqret", "serve", str(index), "--port", "0", *options]
        self.process = subprocess.Popen(command, stderr=self.log)
        while not (found := re.search(r"at http://127\.0\.0\.1:(\d+)", Path(self.log.name).read_text())):
            if self.process.poll() is not None:
                raise SystemExit(Path(self.log.name).read_text())
            time.sleep(0.1)
        self.port = int(found[1])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    @property
    def megabytes(self) -> float:
        """Memory of the process without the files that it maps, which the system takes back when it needs room."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]

    @property
    def in_all(self) -> float:
        """The same with the processes that it started, such as the one that rebuilds the search structure."""
        sizes = [self.megabytes]
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.Error):
                found = child.memory_info()
                sizes.append((found.rss - found.shared) / 1e6)
        return sum(sizes)

    @property
    def mapped(self) -> float:
        """Megabytes of mapped files that are in memory, such as the embeddings and the libraries."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"RssFile:\s+(\d+) kB", status)[1]) / 1000  # type: ignore[index]

    @property
    def cpu(self) -> float:
        """Seconds that the process has computed, which do not depend on what else the machine does."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)


def bodies_of(queries: EventSequences) -> list[bytes]:
    """Return the queries as bodies of searches."""
    return [
        json.dumps({"query": {"times": one.times.tolist(), "marks": one.marks.tolist()}, "k": 10}).encode()
        for one in queries
    ]


class Connection(asyncio.Protocol):
    """One connection that searches again as soon as it is answered, or at fixed times if a rate is given.

    A generator of load shares the cores with the server, so it does little: requests are ready bytes, and of an answer
    only the status and the length are read.
    """

    def __init__(self, requests: list[bytes], at: int, every: float | None, end: float) -> None:
        self.requests, self.at, self.every, self.end = requests, at, every, end
        self.latencies: list[float] = []
        self.failures: list[str] = []
        self.failed = False
        self.missing, self.begun, self.due = -1, 0.0, 0.0
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: Any) -> None:
        self.transport, self.due = transport, time.perf_counter()
        if self.every is not None:  # connections take turns
            self.due += self.every * self.at / 32
        self._next()

    def _next(self) -> None:
        now = time.perf_counter()
        if now >= self.end:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
        elif self.every is not None and now < self.due:
            asyncio.get_running_loop().call_later(self.due - now, self._next)
        else:
            if self.every is not None:  # a search that could not begin in time counts from when it was due
                self.begun, self.due = max(self.due, now - 1.0), max(self.due + self.every, now - 1.0)
            else:
                self.begun = now
            self.transport.write(self.requests[self.at % len(self.requests)])
            self.at += 7

    def data_received(self, data: bytes) -> None:
        if self.missing < 0:
            self.failed = not data.startswith(b"HTTP/1.1 200")
            if self.failed:
                self.failures.append(data[-300:].decode(errors="replace"))
            head = data.index(b"\r\n\r\n") + 4
            self.missing = head + int(re.search(rb"content-length: (\d+)", data[:head])[1])  # type: ignore[index]
        self.missing -= len(data)
        if self.missing == 0:
            if not self.failed:
                self.latencies.append(time.perf_counter() - self.begun)
            self.missing = -1
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or RuntimeError("the server closed the connection"))


async def _load(
    port: int, bodies: list[bytes], connections: int, seconds: float, rate: float | None
) -> tuple[list[float], list[str]]:
    head = "POST /v1/search HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: "
    requests = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in bodies]
    end, every = time.perf_counter() + seconds, None if rate is None else connections / rate
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda at=at: Connection(requests, at, every, end), "127.0.0.1", port)
        for at in range(connections)
    ]
    await asyncio.gather(*(one.done for _, one in made))
    return [latency for _, one in made for latency in one.latencies], [said for _, one in made for said in one.failures]


def load(
    port: int,
    bodies: list[bytes],
    connections: int,
    seconds: float,
    rate: float | None = None,
    failures: list[str] | None = None,
) -> np.ndarray:
    """Search over several connections; return the latencies in seconds. `rate` bounds searches per second in all.

    Answers other than 200 end the run, unless `failures` collects them.
    """
    latencies, failed = uvloop.run(_load(port, bodies, connections, seconds, rate))
    if failures is not None:
        failures += failed
    elif failed:
        raise RuntimeError(failed[0])
    return np.array(latencies)


def described(latencies: np.ndarray, seconds: float) -> str:
    p50, p99 = np.quantile(latencies, [0.5, 0.99]) * 1000
    return f"{len(latencies) / seconds:7.0f} searches/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms"


def alone(work: Any, bodies: Any, number: int = 200) -> float:
    """Return the median time of one call after another, in milliseconds."""
    taken = []
    for at in range(number + 20):
        begun = time.perf_counter()
        work(bodies[at % len(bodies)])
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[20:]) * 1000)


def add_slowly(port: int, number: int, seconds: float, added: Any) -> None:
    """Add sequences over HTTP, spread over the time; count what the server acknowledged. Runs in a process alone."""
    remote, more, begun = nsr.connect(f"http://127.0.0.1:{port}"), sequences(number, 99, "late"), time.monotonic()
    for begin in range(0, number, 1000):
        remote.add(more[begin : begin + 1000])
        added.value = begin + 1000
        time.sleep(max(0.0, seconds * (begin + 1000) / number - (time.monotonic() - begun)))


def long_run(server: Server, index: nsr.Index, bodies: list[bytes], rate: float, minutes: float, number: int) -> None:
    """Search at a steady rate while another client adds sequences; check that nothing fails, grows or is lost."""
    before = load(server.port, bodies, 32, 20, rate)
    base, mapped = server.megabytes, server.mapped
    spawned, memory, begun = multiprocessing.get_context("spawn"), [], time.monotonic()
    in_all: list[float] = []  # with the process that rebuilds, which gives everything back
    added, ended = spawned.Value("q", 0), threading.Event()
    adder = spawned.Process(target=add_slowly, args=(server.port, number, 60 * minutes * 0.9, added))

    def watch() -> None:
        while not ended.wait(2):
            memory.append((time.monotonic() - begun, server.megabytes))
            in_all.append(server.in_all)

    watcher = threading.Thread(target=watch)
    adder.start()
    watcher.start()
    failures: list[str] = []
    during = load(server.port, bodies, 32, 60 * minutes, rate, failures)
    ended.set()
    adder.join()
    watcher.join()
    wanted = [f"late{at}" for at in range(added.value)]
    print(f"long run of {minutes:g} minutes at {rate:.0f} searches/s: {described(during, 60 * minutes)}")
    print(f"  errors {len(failures)} {failures[:1]}")
    print(f"  without writes: {described(before, 20)}")
    print(f"  p99 with writes / without: {np.quantile(during, 0.99) / np.quantile(before, 0.99):.2f} (at most 3)")
    print(f"  acknowledged {len(wanted):,} of {number:,}, missing {len(index.unknown(wanted)):,}")
    later = [used for at, used in memory if at > 60] or [used for _, used in memory]
    growth = max(abs(used / later[0] - 1) for used in later)
    print(
        f"  memory before {base:.0f} MB, after the first minute {later[0]:.0f}, median {np.median(later):.0f}, "
        f"most {max(later):.0f}, at the end {later[-1]:.0f}"
    )
    print(
        f"  it moved by {100 * growth:.0f} % (at most 10); with the process that rebuilds at most {max(in_all):.0f} MB"
    )
    print(f"  mapped files before {mapped:.0f} MB, at the end {server.mapped:.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sequences", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=20.0, help="of load per figure")
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=0.0, help="length of the run with writes; 0 leaves it out")
    parser.add_argument("--rate", type=float, help="of searches beside writes; 80 %% of the most by default")
    parser.add_argument("--model", default="self", help="a method to train on the spot, or a model folder")
    parser.add_argument("--fit-seconds", type=float, default=20.0)
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        if Path(given.model).is_dir():
            model = nsr.load(given.model)
        else:
            data = nsr.simulate(10, 30, 4, seed=0)
            model = make(given.model, "default").fit(
                data.queries.with_meaning(), data.corpus, data.relevance, max_seconds=given.fit_seconds
            )
        corpus, queries = sequences(given.sequences, 1, "c"), sequences(500, 2, "q")
        half = given.sequences // 2
        index = nsr.Index.create(model, Path(folder) / "index", corpus[:half])
        begun = time.perf_counter()
        index.add(corpus[half:])
        in_process = (given.sequences - half) / (time.perf_counter() - begun)
        index.refresh()
        print(
            f"{given.sequences:,} sequences, model {model.name}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
        )
        bodies = bodies_of(queries)
        rows = [queries[row] for row in range(len(queries))]
        with Server(Path(folder) / "index") as server:
            load(server.port, bodies, 1, 1)
            lone = float(np.median(load(server.port, bodies, 1, 3))) * 1000
            inside = alone(lambda query: index.search(query, 10), rows)
            print(f"lone query: {lone:.2f} ms over HTTP, {inside:.2f} in process, ratio {lone / inside:.2f} (<= 1.5)")
            load(server.port, bodies, given.connections, 3)
            cpu = server.cpu
            batched = load(server.port, bodies, given.connections, given.seconds)
            cpu = 1000 * (server.cpu - cpu) / len(batched)
            print(f"batched    {described(batched, given.seconds)}   (at least 400, p99 under 100)")
        with Server(Path(folder) / "index", "--window", "0") as server:
            load(server.port, bodies, given.connections, 2)
            alone_cpu = server.cpu
            single = load(server.port, bodies, given.connections, given.seconds / 2)
            alone_cpu = 1000 * (server.cpu - alone_cpu) / len(single)
            print(f"one by one {described(single, given.seconds / 2)}")
            print(f"batching gives {len(batched) / len(single) / 2:.1f} times the searches (at least 8)")
            print(f"  CPU of the server per search: {cpu:.2f} ms batched, {alone_cpu:.2f} one by one")
        with Server(Path(folder) / "index") as server:
            load(server.port, bodies, given.connections, 2)
            more = sequences(min(given.sequences, 20_000), 5, "http")
            begun = time.perf_counter()
            nsr.connect(f"http://127.0.0.1:{server.port}").add(more)
            over_http = len(more) / (time.perf_counter() - begun)
            ratio = over_http / in_process
            print(f"adding: {over_http:,.0f}/s over HTTP, {in_process:,.0f}/s in process, ratio {ratio:.2f} (>= 0.7)")
            if given.minutes:
                now = load(server.port, bodies, given.connections, given.seconds)  # the machine may have less time now
                rate = given.rate or 0.8 * min(len(batched), len(now)) / given.seconds
                long_run(server, index, bodies, rate, given.minutes, given.sequences)


if __name__ == "__main__":
    main()
