"""The long form of the torture, up to a number of rounds or minutes; it continues where it stopped.

    python tests/torture [--rounds 10000] [--minutes 30] [--only kill ...]

Results are in results/torture/KIND-CHANGE.json: rounds, outcomes, failures, the last day.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import reliability_page
from torture.rounds import CELLS, COST, torture

RESULTS = Path(__file__).resolve().parents[2] / "results" / "torture"
AT_ONCE = 5  # rounds of a cell before the next one has its turn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000, help="stop after this many rounds in all")
    parser.add_argument("--minutes", type=float, default=30.0, help="stop after this long")
    parser.add_argument("--only", action="append", help="only this kind of harm; may be repeated")
    given = parser.parse_args()
    cells = {(kind, change): _read(kind, change) for kind, change in CELLS if not given.only or kind in given.only}
    end = time.monotonic() + 60 * given.minutes
    with torture() as tortured:
        while sum(cell["rounds"] for cell in cells.values()) < given.rounds and time.monotonic() < end:
            kind, change = min(cells, key=lambda name: cells[name]["rounds"] * COST.get(name[1], 1))
            cell = cells[kind, change]
            for _ in range(max(1, AT_ONCE // COST.get(change, 1))):
                try:
                    outcome = tortured.round(kind, change, cell["rounds"])
                except AssertionError as error:
                    outcome = "failed"
                    cell["failures"].append(f"round {cell['rounds']}: {str(error)[:500]}")
                    print(f"{kind}-{change}: {cell['failures'][-1]}", flush=True)
                cell["rounds"] += 1
                cell["outcomes"][outcome] = cell["outcomes"].get(outcome, 0) + 1
            cell["last"] = f"{datetime.now(timezone.utc):%Y-%m-%d}"
            RESULTS.mkdir(parents=True, exist_ok=True)
            (RESULTS / f"{kind}-{change}.json").write_text(json.dumps(cell, indent=1) + "\n")
    reliability_page.write()
    failures = sum(len(cell["failures"]) for cell in cells.values())
    print(f"{sum(cell['rounds'] for cell in cells.values()):,} rounds in all, {failures} failures")
    return 1 if failures else 0


def _read(kind: str, change: str) -> dict[str, Any]:
    file = RESULTS / f"{kind}-{change}.json"
    empty = {"rounds": 0, "outcomes": {}, "failures": [], "last": ""}
    return json.loads(file.read_text()) if file.exists() else empty


if __name__ == "__main__":
    sys.exit(main())
