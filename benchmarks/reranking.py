"""Time to rerank 100 candidates of 100 events, in one call and one by one, in one run on one core.

    python benchmarks/reranking.py

Prints one JSON line per model: seconds together, seconds one by one, and their ratio, which should be at least 5.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import torch

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.self_attention.model import SelfAttention

EVENTS, CANDIDATES, REPEATS = 100, 100, 3


def sequences(number: int, name: str, rng: np.random.Generator) -> EventSequences:
    return EventSequences.from_lists(
        [(np.cumsum(rng.exponential(1 + i % 10, EVENTS)), rng.integers(0, 5, EVENTS)) for i in range(number)],
        ids=[f"{name}{i}" for i in range(number)],
        groups=[str(i % 10) for i in range(number)],
    )


def fastest(work: Callable[[], object]) -> float:
    """Return the least wall-clock seconds of some runs, after one run to warm up."""
    work()
    found = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    queries, corpus = sequences(30, "q", rng), sequences(CANDIDATES, "c", rng)
    queries = queries.with_column("split", ["train"] * 20 + ["validation"] * 10)
    first = SelfAttention(warm_up={"steps": 1}, joint={"steps": 1}, head={"steps": 5}).fit(queries, corpus)
    quick = {"memory": {"out_of_fold_steps": 5}, "process": {"loop": {"steps": 1}}}
    singles = [corpus[k : k + 1] for k in range(CANDIDATES)]
    query = queries[0]
    for kind in (CrossAttention, HashCrossAttention):
        for preset in ("default", "paper"):
            model = kind(preset, first_stage=first, **quick).fit(queries, corpus)
            if preset == "default":
                model.correction.strength = 1.0  # random groups leave it nothing to add, yet its time is to be seen
            together = fastest(lambda model=model: model.score(query, corpus))
            one_by_one = fastest(lambda model=model: [model.score(query, single) for single in singles])
            record = {"model": model.name, "preset": preset, "together": together, "one_by_one": one_by_one}
            print(json.dumps({**record, "ratio": round(one_by_one / together, 1)}), flush=True)


if __name__ == "__main__":
    main()
