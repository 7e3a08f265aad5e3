"""Quality on data folders: every method on every set and seed, one table, mean and deviation over seeds.

    python benchmarks/quality.py ../shared/data/* --method self --method cross --seeds 3

Results are cached by content (see `neuroseqret.evaluation.cache`), so a run that is cut off goes on where it was.
Prints a Markdown table of MAP and nDCG@10 in points, test queries, whole corpus.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import neuroseqret as nsr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--method", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--corpus", choices=("seen", "unseen"), default="seen")
    parser.add_argument("--max-seconds", type=float, default=180.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    methods = ["random", "histogram", *options.method]
    print("| set | measure | " + " | ".join(methods) + " |")
    print("|---|---|" + "---|" * len(methods))
    for folder in options.data:
        if not (folder / "corpus.parquet").exists():
            continue
        reports = [
            nsr.evaluate(folder, options.method, corpus=options.corpus, seed=seed, max_seconds=options.max_seconds)
            for seed in range(options.seeds)
        ]
        for measure in ("AP", "nDCG@10"):
            cells = []
            for method in methods:
                results = [next(r for r in report.results if r.name == method) for report in reports]
                failed = [r.error for r in results if r.error is not None]
                values = 100 * np.array([r.mean(measure) for r in results])
                cells.append(f"failed: {failed[0]}" if failed else f"{values.mean():.1f} ± {values.std():.1f}")
            print(f"| {folder.name} | {measure} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
