"""Read and batch a million sequences; results are ratios to pyarrow and numpy in the same run.

    python benchmarks/reading.py [--sequences 1000000] [--events 50] [--rounds 3]

Prints one line per measurement with its bound, and exits with 1 if a bound is broken:

- time of `neuroseqret.read` for a canonical Parquet file against `pyarrow.parquet.read_table` for the same file;
- peak memory of that read against the size of the arrays that it returns;
- time to make all padded batches of the sequences against a plain copy of their arrays.

Every read runs in a process of its own, and the readers take turns. The best round counts, because other work on the
machine can only slow a read down.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TIME_BOUND, MEMORY_BOUND, BATCHING_BOUND = 1.5, 1.3, 20.0


def make_file(path: Path, sequences: int, events: int) -> None:
    """Write a canonical Parquet file of Poisson sequences with windows and groups."""
    import numpy as np

    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.readers import write

    rng = np.random.default_rng(0)
    times = np.cumsum(rng.exponential(size=(sequences, events)), axis=1)
    batch = EventSequences.from_arrays(
        times.ravel(),
        rng.integers(0, 20, sequences * events, dtype=np.int32),
        np.arange(0, sequences * events + 1, events),
        ids=[f"s{i}" for i in range(sequences)],
        starts=np.zeros(sequences),
        ends=times[:, -1],
        groups=[f"g{i % 100}" for i in range(sequences)],
        mark_names=[f"m{i}" for i in range(20)],
        time_unit="seconds",
    )
    write(batch, path)


def memory_now() -> int:
    """Return the bytes of memory that this process uses."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def forget_peak() -> None:
    """Reset the peak memory that Linux records for this process."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_peak() -> int:
    """Return the most bytes of memory that this process has used since `forget_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


def measure_read(kind: str, path: Path) -> dict[str, float]:
    """Read the file once in this process."""
    import pyarrow.parquet as pq

    from neuroseqret.readers import read

    readers: dict[str, Callable[[Path], object]] = {
        "pyarrow": pq.read_table,
        "neuroseqret": read,
        "unchecked": lambda file: read(file, validate=False),
    }
    forget_peak()
    before = memory_now()
    begin = time.perf_counter()
    result = readers[kind](path)
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "peak": memory_peak() - before, "arrays": result.nbytes}  # type: ignore[attr-defined]


def measure_batching(path: Path) -> dict[str, float]:
    """Time all padded batches of the sequences, and a copy of their arrays."""
    from neuroseqret.data.batching import batches
    from neuroseqret.readers import read

    sequences = read(path, validate=False)
    copied = float("inf")
    for _ in range(3):  # the first copy also pays for the allocation of memory
        begin = time.perf_counter()
        copies = [array.copy() for array in (sequences.times, sequences.marks, sequences.offsets)]
        copied = min(copied, time.perf_counter() - begin)
        del copies
    begin = time.perf_counter()
    events = sum(int(batch.lengths.sum()) for batch in batches(sequences))
    batched = time.perf_counter() - begin
    assert events == len(sequences.times)
    return {"copy": copied, "batching": batched}


def in_new_process(*arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, __file__, "--worker", *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def report(what: str, ratio: float, bound: float, detail: str) -> bool:
    held = ratio <= bound
    print(f"{what:<42} {ratio:6.2f}x  (bound {bound:g}x, {detail}) {'ok' if held else 'BROKEN'}")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=1_000_000)
    parser.add_argument("--events", type=int, default=50, help="events of each sequence")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        kind, file = options.worker
        print(json.dumps(measure_batching(Path(file)) if kind == "batching" else measure_read(kind, Path(file))))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sequences.parquet"
        make_file(path, options.sequences, options.events)
        size = path.stat().st_size / 1e6
        print(f"{options.sequences:,} sequences of {options.events} events, {size:,.0f} MB as Parquet")
        runs: dict[str, list[dict[str, float]]] = {"pyarrow": [], "neuroseqret": [], "unchecked": []}
        for _ in range(options.rounds):
            for kind, results in runs.items():
                results.append(in_new_process(kind, str(path)))
        batching = [in_new_process("batching", str(path)) for _ in range(options.rounds)]
    best = {kind: min(run["seconds"] for run in results) for kind, results in runs.items()}
    peak = max(runs["neuroseqret"], key=lambda run: run["peak"])
    theirs = max(runs["pyarrow"], key=lambda run: run["peak"])
    copied, batched = (min(run[key] for run in batching) for key in ("copy", "batching"))
    unchecked = best["unchecked"] / best["pyarrow"]
    bounds_held = [
        report(
            "read, time against pyarrow.read_table",
            best["neuroseqret"] / best["pyarrow"],
            TIME_BOUND,
            f"{best['neuroseqret']:.2f} s against {best['pyarrow']:.2f} s, {unchecked:.2f}x without validation",
        ),
        report(
            "read, peak memory against its arrays",
            peak["peak"] / peak["arrays"],
            MEMORY_BOUND,
            f"{peak['peak'] / 1e6:.0f} MB of {peak['arrays'] / 1e6:.0f} MB, pyarrow {theirs['peak'] / 1e6:.0f} MB",
        ),
        report(
            "all padded batches, time against a copy",
            batched / copied,
            BATCHING_BOUND,
            f"{batched:.2f} s against {copied:.3f} s",
        ),
    ]
    return 0 if all(bounds_held) else 1


if __name__ == "__main__":
    sys.exit(main())
