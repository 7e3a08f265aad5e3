"""What each part of the self-attention model is worth: one JSON line a data set, variant and seed.

    python benchmarks/ablation.py DATA_FOLDER ... --out FILE [--variants no-markov no-head-phase ...] [--seeds 0 1 2]

MAP over the full corpus in points, of validation and test queries, and CPU seconds of the training. `--unseen` trains
with half of the corpus' sources and ranks only the other half. Lines that FILE has already are not measured again, so
a run that was cut off goes on; the table of all its lines is printed at the end.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroseqret.models.variants import VARIANTS, variant
from neuroseqret.readers.folder import read_folder
from neuroseqret.relevance import Relevance
from neuroseqret.splits import unseen_half
from neuroseqret.training.ranking import average_precision

KEYS = ("set", "variant", "seed", "unseen")


def run(folder: Path, name: str, seed: int, unseen: bool, max_seconds: float) -> dict[str, Any]:
    """Train one variant and rank the corpus."""
    data = read_folder(folder)
    assert data.queries is not None
    relevance = data.relevance if data.relevance is not None else Relevance.from_groups(data.queries, data.corpus)
    trained_on = unseen_half(data.corpus) if unseen else np.ones(len(data.corpus), bool)
    ranked = ~trained_on if unseen else trained_on
    begun = time.process_time()
    model = variant(name, folder.name)
    model.fit(
        data.queries, data.corpus[trained_on], relevance.select_corpus(trained_on), seed=seed, max_seconds=max_seconds
    )
    seconds = time.process_time() - begun
    split = np.array(data.queries.column("split").to_pylist(), dtype=object)
    truth = relevance.select_corpus(ranked)
    found: dict[str, Any] = {"set": folder.name, "variant": name, "seed": seed, "unseen": unseen}
    for part in ("validation", "test"):
        rows = np.flatnonzero(split == part)
        scores = model.score(data.queries[rows], data.corpus[ranked])
        found[part] = round(100 * float(np.nanmean(average_precision(scores, truth.select_queries(rows)))), 2)
    return {**found, "seconds": round(seconds, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="+")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--unseen", action="store_true")
    parser.add_argument("--max-seconds", type=float, default=180.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {tuple(line[key] for key in KEYS) for line in lines}
    for folder, name, seed in product(options.data, options.variants, options.seeds):
        if (folder.name, name, seed, options.unseen) not in done:
            lines.append(run(folder, name, seed, options.unseen, options.max_seconds))
            with options.out.open("a") as file:
                print(json.dumps(lines[-1]), file=file, flush=True)
    print(table(lines))


def table(lines: list[dict[str, Any]]) -> str:
    """Markdown: test MAP of every variant and set, mean over seeds."""
    found: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        found.setdefault((line["variant"], line["set"] + " unseen" * line["unseen"]), []).append(line["test"])
    sets, names = (sorted({key[i] for key in found}) for i in (1, 0))
    rows = [["variant", *sets], ["---"] * (len(sets) + 1)]
    for name in names:
        cells = [found.get((name, s), []) for s in sets]
        rows.append([name, *(f"{np.mean(c):.1f} ({len(c)})" if c else "" for c in cells)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    main()
