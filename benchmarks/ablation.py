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

from neuroseqret.models.presets import PAPER_TABLE
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.readers.folder import read_folder
from neuroseqret.relevance import Relevance
from neuroseqret.splits import unseen_half
from neuroseqret.training.ranking import average_precision

#: Name -> (preset, overrides).
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("default", {}),
    "no-markov": ("default", {"vector": {"markov": False}}),
    "no-pooled": ("default", {"vector": {"pooled": False}}),
    "no-fisher": ("default", {"vector": {"fisher": "none"}}),
    "no-survival": ("default", {"vector": {"survival": False}}),
    "linear-projection": ("default", {"projection": {"kind": "linear"}}),
    "no-projection": ("default", {"projection": {"kind": "none"}, "head": None}),
    "no-head-phase": ("default", {"head": None}),
    "one-member": ("default", {"projection": {"members": 1}}),
    "similarity": ("default", {"similarity": {"form": "normalised"}}),
    "similarity-literal": ("default", {"similarity": {"form": "literal"}}),
    "unwarping": ("default", {"unwarp": {}}),
    "pseudo-train": ("default", {"batch": {"pseudo_from": "train"}}),
    "random-crops": ("default", {"batch": {"crop_share": 0.6}}),
    "mark-dropout": ("default", {"batch": {"mark_dropout": 0.1}}),
    "wider": ("default", {"encoder": {"width": 48}}),
    "paper": ("paper", {}),
}


def run(folder: Path, variant: str, seed: int, unseen: bool) -> dict[str, Any]:
    """Train one variant and rank the corpus."""
    data = read_folder(folder)
    assert data.queries is not None
    preset, overrides = VARIANTS[variant]
    if preset == "paper" and folder.name in PAPER_TABLE:
        preset = f"paper-{folder.name}"
    relevance = data.relevance if data.relevance is not None else Relevance.from_groups(data.queries, data.corpus)
    trained_on = unseen_half(data.corpus) if unseen else np.ones(len(data.corpus), bool)
    ranked = ~trained_on if unseen else trained_on
    begun = time.process_time()
    model = SelfAttention(preset, **overrides)
    model.fit(data.queries, data.corpus[trained_on], relevance.select_corpus(trained_on), seed=seed)
    seconds = time.process_time() - begun
    split = np.array(data.queries.column("split").to_pylist(), dtype=object)
    truth = relevance.select_corpus(ranked)
    found: dict[str, Any] = {"set": folder.name, "variant": variant, "seed": seed, "unseen": unseen}
    for name in ("validation", "test"):
        rows = np.flatnonzero(split == name)
        scores = model.score(data.queries[rows], data.corpus[ranked])
        found[name] = round(100 * float(np.nanmean(average_precision(scores, truth.select_queries(rows)))), 2)
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
        for variant in options.variants:
            for seed in options.seeds:
                print(json.dumps(run(folder, variant, seed, options.unseen)), flush=True)


if __name__ == "__main__":
    main()
