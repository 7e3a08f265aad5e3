"""Show that a change of the code leaves every figure as it was, so that cells measured before it stay fresh.

    python benchmarks/equal_code.py EARLIER_COMMIT --data data/sports data/health --why "what was changed"

All experiments run twice on the data, with the code of the earlier commit and with that of this folder, each fit for
the same number of steps: the clock counts how often it is asked. Where every cell of a version of the code has equal
figures, all digits that cells keep, the pair of versions goes to results/equal_code.json, which `neuroseqret
experiment` reads. What differs, and what measures time, is not listed and will be measured again.

Where a change is to alter some cells, on these data or on others, `--but` names them by patterns:

    --but "*/self+unwarping/*" "twitter/cross+paper/*"

They are measured again, and their differences do not make the others of their version old.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TICK = 0.2  # seconds that pass, by the counting clock, from one look at it to the next
COUNTING = f"""
import itertools, time
time.monotonic = lambda counter=itertools.count(): {TICK} * next(counter)
from neuroseqret.cli.main import run
run()
"""


def measure(source: Path, data: list[str], out: Path, seconds: float) -> dict[str, dict[str, Any]]:
    """All cells of one version of the code, by name."""
    options = ["--seeds", "1", "--max-seconds", str(seconds), "--out", str(out), "--document", str(out / "results.md")]
    folders = [argument for folder in data for argument in ("--data", folder)]
    subprocess.run(
        [sys.executable, "-c", COUNTING, "experiment", "all", *folders, *options],
        env={**os.environ, "PYTHONPATH": str(source / "src"), "OMP_NUM_THREADS": "1"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    cells = out / "cells"
    return {str(file.relative_to(cells)): json.loads(file.read_text()) for file in sorted(cells.rglob("*.json"))}


def untimed(result: Any) -> Any:
    """A result without the seconds in it."""
    if isinstance(result, dict):
        return {key: untimed(value) for key, value in result.items() if "seconds" not in key}
    return [untimed(value) for value in result] if isinstance(result, list) else result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", help="commit whose cells are to stay")
    parser.add_argument("--data", nargs="+", required=True)
    parser.add_argument("--why", required=True, help="what was changed")
    parser.add_argument("--but", nargs="*", default=[], help="patterns of cells that the change alters")
    parser.add_argument("--seconds", type=float, default=6.0, help="budget of a fit, by the counting clock")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "earlier"
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), options.earlier], cwd=ROOT, check=True)
        try:
            with ThreadPoolExecutor(2) as both:
                before, now = both.map(
                    lambda source: measure(source, options.data, Path(scratch) / f"of-{source.name}", options.seconds),
                    (tree, ROOT),
                )
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=ROOT, check=True)
    equal: dict[tuple[str, str], list[bool]] = {}
    for name in sorted(before.keys() | now.keys()):
        if name not in before or name not in now:
            raise SystemExit(f"{name}: only one of the versions has this cell; they cannot be compared")
        if any(fnmatchcase(name.removesuffix(".json"), pattern) for pattern in options.but):
            continue
        codes = before[name]["config"]["code"], now[name]["config"]["code"]
        same = untimed(before[name]["result"]) == untimed(now[name]["result"])
        equal.setdefault(codes, []).append(same)
        if not same:
            print(f"{name}: differs")
    shown = {codes for codes, same in equal.items() if codes[0] != codes[1] and all(same)}
    file = ROOT / "results" / "equal_code.json"
    kept = json.loads(file.read_text()) if file.exists() else []
    kept.append(
        {
            "why": options.why,
            "earlier": options.earlier,
            "data": [Path(folder).name for folder in options.data],
            "cells": sum(len(equal[codes]) for codes in shown),
            "but": options.but,
            "codes": dict(sorted(shown)),
        }
    )
    if shown:
        file.write_text(json.dumps(kept, indent=1) + "\n")
    print(f"{len(shown)} of {sum(a != b for a, b in equal)} changed versions give equal figures")


if __name__ == "__main__":
    main()
