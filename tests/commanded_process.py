"""A process that takes commands line by line and answers each with a line, for tests that kill its children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).resolve().parent


@contextmanager
def commanded(script: Path, **variables: str) -> Iterator[Callable[..., str]]:
    """Start a script, with further variables in its environment; give a function that sends words and returns lines."""
    path = os.pathsep.join([str(TESTS), *sys.path])  # the same library and the same references as here
    process = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables},
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(*words: object) -> str:
        process.stdin.write(" ".join(map(str, words)) + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    assert process.stdout.readline().strip() == "ready"
    yield send
    process.stdin.close()
    process.wait(timeout=30)
    process.stdout.close()
