"""Fuzz everything that comes from outside, for a while or up to a number of inputs; continues where it stopped.

    python -m tests.fuzz [--inputs 1000000] [--minutes 15] [--target NAME ...]

Results are in results/fuzz/TARGET.json (inputs, what came of them, findings, the next seed); inputs that broke
something are in results/fuzz/findings/.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import psutil

import reliability_page
from fuzz.targets import targets

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "fuzz"
BATCH = 10_000  # inputs of a process; starting one takes as long as thousands of inputs
SLOW = ("read-made", "http", "index-st")  # thousands a minute, not a second: these get a quarter of the inputs
GUIDED = ("read", "trec", "filter")  # every second process of these is guided by coverage
MEMORY = Path("/dev/shm")  # files of inputs are kept in memory where that is possible: a disk is ten times slower
SECONDS = 900  # of the processor, of a process: far more than its inputs take; one that hangs is a finding
ASLEEP = (psutil.STATUS_SLEEPING, psutil.STATUS_DISK_SLEEP)
IDLE = 120  # seconds of sleep: no input waits for anything


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="stop after this many inputs in all")
    parser.add_argument("--minutes", type=float, default=15.0, help="stop after this long")
    parser.add_argument("--target", action="append", help="only this target; may be repeated")
    given = parser.parse_args()
    names = given.target or list(targets())
    end = time.monotonic() + 60 * given.minutes
    states = {name: _state(name) for name in names}
    while sum(state["inputs"] for state in states.values()) < given.inputs and time.monotonic() < end:
        name = min(names, key=lambda each: _turns(each, states[each]))
        state = states[name]
        guided = state["seed"] % 2 == 1 and name.startswith(GUIDED) and "made" not in name
        _batch(name, state, guided, BATCH // 4 if name.startswith(SLOW) else BATCH)
        RESULTS.mkdir(parents=True, exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(state, indent=1) + "\n")
        print(f"{name}: {state['inputs']:,} inputs, {state['findings']} findings", flush=True)
    reliability_page.write()
    total = sum(state["inputs"] for state in states.values())
    findings = sum(state["findings"] for state in states.values())
    print(f"{total:,} inputs in all, {findings} findings")
    return 1 if findings else 0


def _turns(name: str, state: dict[str, Any]) -> float:
    """Return how often it was a target's turn; the one with the fewest goes next."""
    return float(state["inputs"]) * (4 if name.startswith(SLOW) else 1)


def _state(name: str) -> dict[str, Any]:
    file = RESULTS / f"{name}.json"
    empty = {"inputs": 0, "data": 0, "refused": 0, "findings": 0, "guided": 0, "seconds": 0.0, "seed": 0, "last": ""}
    return json.loads(file.read_text()) if file.exists() else empty


def run_child(command: list[str], environment: dict[str, str], seconds: int, idle: int = IDLE) -> tuple[bytes, bool]:
    """Run a process for at most `seconds` of processor time; return what it said, and whether it hung.

    It hangs too if it sleeps for `idle` seconds in a row. A process that hangs says where: the stacks of its threads.
    Time in which it is stopped, or waits for a processor, does not count.
    """
    with tempfile.TemporaryFile() as errors:
        process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)
        used = slept = 0.0
        while used < seconds and slept < idle:
            with suppress(psutil.TimeoutExpired):
                process.wait(1.0)
                break
            before, used = used, sum(process.cpu_times()[:4])  # its own and its children's
            slept = slept + 1.0 if process.status() in ASLEEP and used - before < 0.01 else 0.0
        if hung := process.poll() is None:
            process.send_signal(signal.SIGUSR1)  # `child` writes the stacks of its threads
            time.sleep(1.0)
            process.kill()
            process.wait()
        errors.seek(0)
        return errors.read(), hung


def _batch(name: str, state: dict[str, Any], guided: bool, number: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="neuroseqret-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    begun = time.monotonic()
    words = [str(Path(__file__).with_name("child.py")), name, str(state["seed"]), str(number), str(folder)]
    words += ["atheris"] if guided else []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
    said, hung = run_child([sys.executable, *words], environment, SECONDS)
    if (folder / "done.json").exists():
        counts = json.loads((folder / "done.json").read_text())
    else:
        counts = {"inputs": 1, "data": 0, "refused": 0, "findings": 0}
    if hung or not (folder / "done.json").exists():  # it hung or died: what was being tried is a finding
        counts["findings"] += 1
        if (folder / "current").exists():
            shutil.copy(folder / "current", folder / f"finding-{name}-{state['seed']}-died.bin")
        (folder / f"finding-{name}-{state['seed']}-died.txt").write_bytes(said[-4000:])
    for kept in folder.glob("finding-*"):
        (RESULTS / "findings").mkdir(parents=True, exist_ok=True)
        shutil.copy(kept, RESULTS / "findings" / kept.name)
    for key in ("inputs", "data", "refused", "findings"):
        state[key] += counts[key]
    state["guided"] += counts["inputs"] if guided else 0
    state["seconds"] = round(state["seconds"] + time.monotonic() - begun, 1)
    state["seed"] += 1
    state["last"] = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
