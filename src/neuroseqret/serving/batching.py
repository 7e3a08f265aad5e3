"""Queries of concurrent requests are embedded and searched together.

A model embeds 32 queries in little more time than one. Jobs that arrive while a batch runs form the next batch. If the
last batches held several jobs, more are about to arrive: then the first job waits for them, but no longer than the
window. A lone job does not wait: after batches of one nothing is expected.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

J = TypeVar("J")
_MOST = 64  # jobs per batch: more give no more throughput, and the first of them would wait for the last
_WORTH_WAITING = 16  # jobs; more cost hardly less each, and while this batch runs, the others are read and collected
_MEMORY = 0.7  # how much the expected number of jobs keeps of its old value from batch to batch


class Batcher(Generic[J]):
    """Collects jobs and runs them in a thread of its own, one batch at a time.

    `run` takes a list of jobs and leaves the outcome in each; it must not raise. The thread takes jobs from the list
    itself: a job reaches it, and its caller learns of the end, with one switch between threads each way.
    """

    def __init__(self, run: Callable[[list[J]], None], window: float, name: str, most: int = _MOST) -> None:
        self._run, self.window, self.most = run, window, most
        self._waiting: list[tuple[J, asyncio.Future[None]]] = []
        self._arrived = threading.Condition()
        self._enough = 1  # number of jobs that wake the thread
        self._expected = 1.0
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    async def submit(self, job: J, seconds: float | None = None) -> None:
        """Return when the job is done; raise `asyncio.TimeoutError` if that takes longer than `seconds`."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread.start()
        done: asyncio.Future[None] = self._loop.create_future()
        with self._arrived:
            self._waiting.append((job, done))
            if len(self._waiting) >= self._enough:
                self._arrived.notify()
        late = None if seconds is None else self._loop.call_later(seconds, _give_up, done)
        try:
            await done
        finally:
            if late is not None:
                late.cancel()

    async def close(self) -> None:
        """Finish the jobs that wait, then stop the thread."""
        with self._arrived:
            self._closing = True
            self._arrived.notify()
        if self._loop is not None:
            await self._loop.run_in_executor(None, self._thread.join)

    def _serve(self) -> None:
        assert self._loop is not None
        while batch := self._collected():
            self._run([job for job, _ in batch])
            self._loop.call_soon_threadsafe(_finish, [done for _, done in batch])

    def _collected(self) -> list[tuple[J, asyncio.Future[None]]]:
        """Return the next batch; nothing once the batcher is closed and all jobs are done."""
        with self._arrived:
            while True:
                while not self._waiting and not self._closing:
                    self._enough = 1
                    self._arrived.wait()
                if not self._waiting:
                    return []
                self._wait_for_more()
                batch, self._waiting = self._waiting[: self.most], self._waiting[self.most :]
                batch = [(job, done) for job, done in batch if not done.done()]  # its caller went away
                if batch:
                    self._expected = _MEMORY * self._expected + (1 - _MEMORY) * len(batch)
                    return batch

    def _wait_for_more(self) -> None:
        """Wait for the jobs that are expected, but no longer than the window."""
        self._enough = min(round(self._expected), _WORTH_WAITING, self.most)
        end = time.monotonic() + self.window
        while len(self._waiting) < self._enough and not self._closing:
            left = end - time.monotonic()
            if left <= 0 or not self._arrived.wait(left):
                return


def _give_up(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_exception(asyncio.TimeoutError())


def _finish(batch: list[asyncio.Future[None]]) -> None:
    for done in batch:
        if not done.done():
            done.set_result(None)
