"""Choose the learning rate of every trained baseline: three rates, one seed, by the MAP of validation queries.

    python benchmarks/tuning.py data/sports data/celebrity --out tuning.jsonl [--method gru ...]

Test queries are dropped before anything is fitted. Each result is one line of the file, so an interrupted run goes on
where it stopped; an incomplete last line is computed again. Prints a Markdown table of the mean MAP over the sets.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroseqret import methods
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.splits import split_rows_if_any
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.base import RelevanceModel
from neuroseqret.readers.data_folder import read_folder

CONTRASTIVE = ("histogram-metric", "gru")
RATES = {
    "histogram-metric": (7e-4, 2e-3, 6e-3),
    "gru": (1e-3, 3e-3, 1e-2),
    "rmtpp": (1e-3, 3e-3, 1e-2),
    "rank-rmtpp": (1e-3, 3e-3, 1e-2),
    "sahp": (3e-4, 1e-3, 3e-3),
    "thp": (3e-4, 1e-3, 3e-3),
    "rank-sahp": (3e-4, 1e-3, 3e-3),
    "rank-thp": (3e-4, 1e-3, 3e-3),
}
TIE = 0.1  # points of MAP: of rates this close to the best, the highest is taken; large sets leave time for few steps
Cell = dict[str, Any]


def make(name: str, rate: float) -> RelevanceModel:
    """Return a new method with another learning rate."""
    if name in CONTRASTIVE:
        loop = methods.make(name).settings.loop
        return methods.make(name, loop=loop.model_copy(update={"learning_rate": rate}))
    return methods.make(name, learning_rate=rate)


def measure(name: str, rate: float, folder: Path, max_seconds: float) -> Cell:
    """Fit on the train queries and rank the whole corpus for the validation queries."""
    data = read_folder(folder)
    assert data.queries is not None
    kept = np.sort(np.concatenate([split_rows_if_any(data.queries, split) for split in ("train", "validation")]))
    queries, corpus = data.queries[kept], data.corpus
    relevance = (
        Relevance.from_groups(queries, corpus) if data.relevance is None else data.relevance.select_queries(kept)
    )
    begun = time.monotonic()
    model = make(name, rate).fit(queries, corpus, relevance, max_seconds=max_seconds)
    seconds = time.monotonic() - begun
    rows = split_rows_if_any(queries, "validation")
    found = mean_average_precision(
        model.score(queries[rows], corpus, unknown_marks="keep"), relevance.select_queries(rows)
    )
    steps = model.log.records[-1]["step"]
    return {"method": name, "set": folder.name, "rate": rate, "max_seconds": max_seconds,
            "MAP": round(found, 5), "steps": steps, "seconds": round(seconds, 1)}  # fmt: skip


def read_cells(path: Path) -> list[Cell]:
    """Return the results in a file; an incomplete last line is removed from it."""
    if not path.exists():
        return []
    whole, newline, _ = path.read_text().rpartition("\n")
    path.write_text(whole + newline)
    return [json.loads(line) for line in whole.splitlines()]


def table(cells: list[Cell], sets: list[str]) -> str:
    """Return the mean MAP over the sets in points, by method and rate; the chosen rate is bold."""
    lines = ["| method | " + " | ".join(("low", "middle", "high")) + " |", "|---|---|---|---|"]
    for name, rates in RATES.items():
        found = {(c["set"], c["rate"]): 100 * c["MAP"] for c in cells if c["method"] == name}
        if not all((s, rate) in found for s in sets for rate in rates):
            continue
        means = [np.mean([found[s, rate] for s in sets]) for rate in rates]
        chosen = max(rate for rate, mean in zip(rates, means, strict=True) if mean >= max(means) - TIE)
        shown = []
        for rate, mean in zip(rates, means, strict=True):
            each = ", ".join(f"{found[s, rate]:.1f}" for s in sets)
            bold = "**" if rate == chosen else ""
            shown.append(f"{bold}{mean:.1f}{bold} ({each}) at {rate:g}")
        lines.append(f"| `{name}` | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--method", action="append", choices=RATES)
    parser.add_argument("--max-seconds", type=float, default=40.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cells = read_cells(options.out)
    done = {(c["method"], c["set"], c["rate"], c["max_seconds"]) for c in cells}
    with options.out.open("a") as file:
        for name in options.method or RATES:
            for folder in options.data:
                for rate in RATES[name]:
                    if (name, folder.name, rate, options.max_seconds) not in done:
                        cells.append(measure(name, rate, folder, options.max_seconds))
                        file.write(json.dumps(cells[-1]) + "\n")
                        file.flush()
    of_this_length = [c for c in cells if c["max_seconds"] == options.max_seconds]
    print(table(of_this_length, [folder.name for folder in options.data]))


if __name__ == "__main__":
    main()
