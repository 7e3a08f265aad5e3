"""Queries of concurrent requests are embedded and searched together.

A model embeds 32 queries in little more time than one. Jobs that arrive while a batch runs form the next batch. If the
last batches held several jobs, more are about to arrive: then the first job waits for them, but no longer than the
window. A lone job does not wait: after batches of one nothing is expected.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

J = TypeVar("J")
_MOST = 64  # jobs per batch: more give no more throughput, and the first of them would wait for the last
_MEMORY = 0.7  # how much the expected number of jobs keeps of its old value from batch to batch


class Batcher(Generic[J]):
    """Collects jobs and runs them in a thread of its own, one batch at a time.

    `run` takes a list of jobs and leaves the outcome in each; it must not raise.
    """

    def __init__(self, run: Callable[[list[J]], None], window: float, name: str, most: int = _MOST) -> None:
        self._run, self.window, self.most = run, window, most
        self._thread = ThreadPoolExecutor(1, name)
        self._waiting: list[tuple[J, asyncio.Future[None]]] = []
        self._arrived = asyncio.Event()
        self._expected = 1.0
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def submit(self, job: J) -> None:
        """Return when the job is done."""
        if self._task is None:
            self._task = asyncio.create_task(self._serve())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, done))
        self._arrived.set()
        await done

    async def close(self) -> None:
        """Finish the jobs that wait, then stop the thread."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        self._thread.shutdown()

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._arrived.clear()
            if not self._waiting:
                if self._closing:
                    return
                await self._arrived.wait()
                continue
            await self._collect()
            batch, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
            batch = [(job, done) for job, done in batch if not done.cancelled()]  # its caller went away
            if not batch:
                continue
            self._expected = _MEMORY * self._expected + (1 - _MEMORY) * len(batch)
            await loop.run_in_executor(self._thread, self._run, [job for job, _ in batch])
            for _, done in batch:
                if not done.done():
                    done.set_result(None)

    async def _collect(self) -> None:
        """Wait for the jobs that are expected, but no longer than the window."""
        if self.window <= 0:
            return
        end = time.monotonic() + self.window
        while len(self._waiting) < min(round(self._expected), self.most) and not self._closing:
            left = end - time.monotonic()
            if left <= 0:
                return
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left)
            except asyncio.TimeoutError:
                return
