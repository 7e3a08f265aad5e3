"""Memory that `fit` takes with a large corpus.

    python benchmarks/fit_memory.py [--sequences 1000000] [--events 30] [--max-seconds 120]

Sequences of 5 marks are written to a Parquet data folder, and another process runs `neuroseqret fit` on it. Prints one
JSON line: the peak memory of that process, that of a process that imports the same and reads the folder, and the
difference, in GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from neuroseqret.data.sequences import EventSequences
from neuroseqret.readers import write

GROUPS, QUERIES, MARKS = 1000, 2000, 5
READ = "import sys, neuroseqret as nsr; from neuroseqret import SelfAttention; data = nsr.read_folder(sys.argv[1])"


def sequences(number: int, events: int, name: str, rng: np.random.Generator, **columns: object) -> EventSequences:
    gaps = rng.lognormal(0, 1, (number, events))
    return EventSequences.from_arrays(
        gaps.cumsum(1).ravel(),
        rng.integers(0, MARKS, number * events),
        np.arange(number + 1) * events,
        ids=[f"{name}{row}" for row in range(number)],
        groups=[f"g{row % GROUPS}" for row in range(number)],
        validate=False,
        **columns,  # type: ignore[arg-type]
    )


def peak(command: list[str]) -> float:
    """Run a process; return its largest resident memory in GB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[1:]} ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_maxrss * 1024 / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--max-seconds", type=float, default=120)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder, model = Path(temporary) / "data", Path(temporary) / "model"
        folder.mkdir()
        split = np.where(np.arange(QUERIES) % 5 == 0, "validation", "train").tolist()
        write(sequences(arguments.sequences, arguments.events, "c", rng), folder / "corpus.parquet")
        write(sequences(QUERIES, arguments.events, "q", rng, metadata={"split": split}), folder / "queries.parquet")
        command = [sys.executable, "-m", "neuroseqret", "fit", str(folder), "--out", str(model)]
        fit = peak([*command, "--max-seconds", str(arguments.max_seconds)])
        read = peak([sys.executable, "-c", READ, str(folder)])
    found = {"sequences": arguments.sequences, "events": arguments.events, "fit": round(fit, 2), "read": round(read, 2)}
    print(json.dumps({**found, "more": round(fit - read, 2)}))


if __name__ == "__main__":
    main()
