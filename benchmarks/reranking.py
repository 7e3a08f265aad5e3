"""Time to rerank the 100 best hits of a search, in one run on one core.

    python benchmarks/reranking.py [--sequences N]

An index of sequences of 100 events is searched with and without `cross` on top of the index's model. One JSON line per
strength of its terms (as fitted on random groups, which is mostly zero; memory; memory and attention between events):
milliseconds of processor time of the search, what reranking adds to it, what the same model takes to score the same 100
candidates from their events (`anew`), and the ratio of the last two.

Then one JSON line per model and preset: seconds to score 100 candidates together and one by one, and their ratio, which
should be at least 5.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from neuroseqret.data.sequences import EventSequences
from neuroseqret.index import Index
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.self_attention.model import SelfAttention

EVENTS, CANDIDATES, REPEATS = 100, 100, 3
SHORT: dict[str, Any] = {"warm_up": {"steps": 1}, "joint": {"steps": 1}, "head": {"steps": 5}, "selection": None}
QUICK: dict[str, Any] = {"memory": {"out_of_fold_steps": 5}, "process": {"loop": {"steps": 1}}}
STRENGTHS = {"zero": (0.0, 0.0), "memory": (1.0, 0.0), "memory and events": (1.0, 0.1)}


def sequences(number: int, name: str, rng: np.random.Generator) -> EventSequences:
    return EventSequences.from_lists(
        [(np.cumsum(rng.exponential(1 + i % 10, EVENTS)), rng.integers(0, 5, EVENTS)) for i in range(number)],
        ids=[f"{name}{i}" for i in range(number)],
        groups=[str(i % 10) for i in range(number)],
    )


def trained(number: int) -> tuple[EventSequences, EventSequences, SelfAttention]:
    """Return queries, a corpus with this many sequences, and a first stage."""
    rng = np.random.default_rng(0)
    queries, corpus = sequences(30, "q", rng), sequences(number, "c", rng)
    queries = queries.with_column("split", ["train"] * 20 + ["validation"] * 10)
    return queries, corpus, SelfAttention(**SHORT).fit(queries, corpus[:CANDIDATES])


def fastest(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the least seconds of some runs, after one run to warm up."""
    work()
    found = []
    for _ in range(REPEATS):
        begun = clock()
        work()
        found.append(clock() - begun)
    return min(found)


def in_a_search(number: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what reranking adds to a search, for every strength."""
    queries, corpus, first = trained(number)
    model = CrossAttention(first_stage=first, **QUICK).fit(queries, corpus[:CANDIDATES])
    index = Index.create(first, folder, corpus)
    index.compact()
    index.refresh(wait=True)
    asked = [queries[k] for k in range(len(queries))]
    options = [{}, {"rerank": model, "rerank_top": CANDIDATES}]
    listed = index.get([hit.id for hit in index.search(asked[0], CANDIDATES)])
    for name, (strength, event_strength) in STRENGTHS.items():
        model.correction.strength, model.correction.event_strength = strength, event_strength
        plain, reranked = (
            fastest(lambda o=o: [index.search(one, **o) for one in asked], time.process_time) / len(asked)
            for o in options
        )
        anew = fastest(lambda: [model.score(one, listed) for one in asked[:10]], time.process_time) / 10
        yield {
            "strengths": name,
            "search": round(1e3 * plain, 3),
            "added": round(1e3 * (reranked - plain), 3),
            "anew": round(1e3 * anew, 3),
            "ratio": round((reranked - plain) / anew, 3),
        }


def together_and_one_by_one() -> Iterator[dict[str, Any]]:
    """Yield the seconds to score candidates in one call and in many, for every model and preset."""
    queries, corpus, first = trained(CANDIDATES)
    singles = [corpus[k : k + 1] for k in range(CANDIDATES)]
    query = queries[0]
    for kind in (CrossAttention, HashCrossAttention):
        for preset in ("default", "paper-literal"):
            model = kind(preset, first_stage=first, **QUICK).fit(queries, corpus)
            if preset == "default":
                model.correction.strength = 1.0  # random groups leave it nothing to add, yet its time is to be seen
            together = fastest(lambda model=model: model.score(query, corpus))
            one_by_one = fastest(lambda model=model: [model.score(query, single) for single in singles])
            record = {"model": model.name, "preset": preset, "together": together, "one_by_one": one_by_one}
            yield {**record, "ratio": round(one_by_one / together, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Time to rerank the 100 best hits of a search.")
    parser.add_argument("--sequences", type=int, default=5000, help="size of the index; default 5000")
    number = parser.parse_args().sequences
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        for record in in_a_search(number, Path(folder) / "index"):
            print(json.dumps(record), flush=True)
    for record in together_and_one_by_one():
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
