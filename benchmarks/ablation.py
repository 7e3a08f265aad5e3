"""What each part of the self-attention model is worth: one JSON line a data set, variant and seed.

    python benchmarks/ablation.py DATA_FOLDER ... [--variants no-markov no-head ...] [--seeds 0 1 2] [--unseen]

MAP over the full corpus in points, of validation and test queries, and CPU seconds of the training. `--unseen` trains
with half of the corpus' sources and ranks only the other half.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from neuroseqret.models.variants import VARIANTS, variant
from neuroseqret.readers.folder import read_folder
from neuroseqret.relevance import Relevance
from neuroseqret.splits import unseen_half
from neuroseqret.training.ranking import average_precision


def run(folder: Path, name: str, seed: int, unseen: bool) -> dict[str, Any]:
    """Train one variant and rank the corpus."""
    data = read_folder(folder)
    assert data.queries is not None
    relevance = data.relevance if data.relevance is not None else Relevance.from_groups(data.queries, data.corpus)
    trained_on = unseen_half(data.corpus) if unseen else np.ones(len(data.corpus), bool)
    ranked = ~trained_on if unseen else trained_on
    begun = time.process_time()
    model = variant(name, folder.name)
    model.fit(data.queries, data.corpus[trained_on], relevance.select_corpus(trained_on), seed=seed)
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
    options = parser.parse_args()
    torch.set_num_threads(1)
    for folder in options.data:
        for name in options.variants:
            for seed in options.seeds:
                print(json.dumps(run(folder, name, seed, options.unseen)), flush=True)


if __name__ == "__main__":
    main()
