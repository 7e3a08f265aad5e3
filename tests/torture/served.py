"""A server that is killed while a client writes: it answers one request after the other until it comes to harm."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from naive.index import some_sequences
from neuroseqret.errors import UserError
from neuroseqret.serving.client import RemoteIndex
from neuroseqret.serving.running import run
from neuroseqret.serving.settings import ServerSettings
from neuroseqret.serving.transport import Transport

REQUESTS: tuple[Callable[[RemoteIndex], object], ...] = (
    lambda index: index.add(some_sequences(5, seed=1, prefix="a")),
    lambda index: index.upsert(some_sequences(4, seed=2)),
    lambda index: index.feedback("s1", {"s2": True, "s4": False}, "u"),
    lambda index: index.remove(["s3", "s9"]),
)


def serve(folder: str, arm: Callable[[], object], calls: Callable[[], int], say: Callable[[str], None]) -> None:
    """Serve an index; say the address when the server has started and is armed, and the calls when it is ended."""

    def ended(*_: object) -> None:
        say(str(calls()))
        os._exit(0)

    def started(url: str) -> None:
        arm()
        say(url)

    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # its log
    signal.signal(signal.SIGTERM, ended)  # the server ends in order first, then it raises the signal again
    run(ServerSettings(index=Path(folder), port=0), started)


def ask(url: str, number: int) -> int:
    """Send the first requests, each once, until one is not answered; return how many were acknowledged."""
    for done, request in enumerate(REQUESTS[:number]):
        try:
            request(RemoteIndex(Transport(url, None, 60.0, tries=1)))
        except UserError:
            return done
    return number
