"""What values of events add: a model with and without them, on sequences that training has not seen.

    neuroseqret data prepare celebrity RAW --out celebrity      # vox-metadata.csv, see docs/datasets.md
    python benchmarks/values.py celebrity --value face_x --value face_height

Prints one JSON line per preset: MAP and nDCG@10 in points with the whole corpus ranked, as means over the seeds,
without and with the values, the p-value of the difference in MAP (paired randomisation test over queries on values
averaged over seeds), and CPU seconds of training.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

from neuroseqret.evaluation.protocol import RankingTask, make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.evaluation.significance import randomisation_test
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.readers.data_folder import read_folder

MEASURES = ("AP", "nDCG@10")


def measured(task: RankingTask, preset: str, values: list[str], seed: int) -> tuple[np.ndarray, float]:
    """Return the measures of every query, (measures, queries), and the CPU seconds of training."""
    begun = time.process_time()
    model = SelfAttention(preset, values=values)
    model.fit(task.training_queries, task.training_corpus, task.training_relevance, seed=seed)
    seconds = time.process_time() - begun
    found = answer(model, task, what=preset).measures
    return 100 * np.stack([found[name] for name in MEASURES]), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="What values of events add to a model.")
    parser.add_argument("data", type=Path, help="data folder")
    parser.add_argument("--value", action="append", required=True, metavar="COLUMN", help="may be repeated")
    parser.add_argument("--preset", action="append", help="default by default; may be repeated")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    folder = read_folder(given.data)
    if folder.queries is None:
        parser.error(f"{given.data} has no queries")
    task = make_task(folder.queries, folder.corpus, folder.relevance, condition="unseen", max_queries=500)
    for preset in given.preset or ["default"]:
        by_query, seconds = [], []
        for values in ([], given.value):
            runs = [measured(task, preset, values, seed) for seed in range(given.seeds)]
            by_query.append(np.mean([found for found, _ in runs], axis=0))
            seconds.append(float(np.mean([spent for _, spent in runs])))
        means = np.mean(by_query, axis=2)
        line = {"preset": preset, "queries": by_query[0].shape[1], "seeds": given.seeds}
        for m, name in enumerate(MEASURES):
            line |= {f"{name} without": round(means[0, m], 2), f"{name} with": round(means[1, m], 2)}
        p = randomisation_test(by_query[1][0], by_query[0][0]).item()
        print(json.dumps({**line, "p": round(p, 5), "seconds": [round(s) for s in seconds]}), flush=True)


if __name__ == "__main__":
    main()
