"""Sequences per second in training and embedding of every neural method, one core, in one run.

    python benchmarks/training.py [METHOD ...]

Each stands beside a bare torch TransformerEncoder as wide and as deep (two blocks for the recurrent ones), which is
fed ready-made vectors in batches of the same size: forward, backward and Adam step for training, forward for embedding.
A ratio above 1 is faster than the bare encoder. The methods run through their own `fit`; the time of a step is read
where the training loop writes its log, so that all a step needs (drawing, padding, features, losses, optimiser)
counts and nothing else. `histogram-metric` and the default second stages train a metric on vectors that are computed
once; they stand beside the encoder of `self`. A second stage is given its first one. `cross` has no embedding: there
the time is that of scoring a query with all candidates. Prints a table, and the same as one JSON line.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn

from neuroseqret import methods
from neuroseqret.baselines.attentive import BLOCKS, HEADS, WIDTH
from neuroseqret.baselines.point_process import BATCH
from neuroseqret.baselines.rmtpp import HIDDEN
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.base import Embedder, RelevanceModel
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.training.log import TrainingLog


@dataclass(frozen=True)
class Case:
    """A method, the size of its encoder and of its batches."""

    method: str
    width: int
    heads: int = 1
    batch: int = 2 * 64  # anchors and candidates
    preset: str = "default"
    phase: str | None = None  # the phase of training that is timed; None: the first
    options: Callable[[int], dict[str, Any]] = field(default=lambda steps: {"steps": steps})

    @property
    def label(self) -> str:
        return self.method if self.preset == "default" else f"{self.method} ({self.preset})"

    def make(self, steps: int) -> RelevanceModel:
        return methods.make(self.method, self.preset, **self.options(steps))


def loop(steps: int) -> dict[str, Any]:
    return {"loop": {"steps": steps}}


def two_phases(steps: int) -> dict[str, Any]:
    return {"warm_up": {"steps": 0}, "joint": {"steps": steps}, "head": {"steps": 1}}


def memory(steps: int) -> dict[str, Any]:
    return {"memory": {"out_of_fold_steps": steps}}


def literal(steps: int) -> dict[str, Any]:
    return {"process": loop(steps)}


CASES = [
    Case("histogram-metric", 32, batch=2 * 128, options=loop),
    Case("gru", 64, options=loop),
    Case("rmtpp", HIDDEN, batch=BATCH),
    Case("sahp", WIDTH, HEADS, BATCH),
    Case("thp", WIDTH, HEADS, BATCH),
    Case("rank-rmtpp", HIDDEN, batch=BATCH),
    Case("rank-sahp", WIDTH, HEADS, BATCH),
    Case("rank-thp", WIDTH, HEADS, BATCH),
    Case("self", 32, phase="joint", options=two_phases),
    Case("cross", 32, batch=2 * 128, options=memory),
    Case("hash-cross", 32, batch=2 * 128, options=memory),
    Case("cross", 64, batch=16 * 9, preset="paper-literal", options=literal),  # 16 queries, 8 candidates each
    Case("hash-cross", 64, batch=16 * 9, preset="paper-literal", options=literal),
]


def sequences(number: int, length: int, marks: int, seed: int, **columns: Any) -> EventSequences:
    rng = np.random.default_rng(seed)
    return EventSequences.from_arrays(
        rng.lognormal(0, 1, (number, length)).cumsum(1).ravel(),
        rng.integers(0, marks, number * length),
        np.arange(number + 1) * length,
        ids=[f"{seed}-{i}" for i in range(number)],
        groups=[f"g{i % 20}" for i in range(number)],
        validate=False,
        **columns,
    )


@contextmanager
def step_times() -> Iterator[dict[str, list[float]]]:
    """CPU seconds at the end of every step, by phase, for as long as the block runs."""
    found: dict[str, list[float]] = defaultdict(list)
    add = TrainingLog.add

    def timed(log: TrainingLog, record: dict[str, Any]) -> None:
        found[record["phase"]].append(time.process_time())
        add(log, record)

    TrainingLog.add = timed  # type: ignore[method-assign]
    try:
        yield found
    finally:
        TrainingLog.add = add  # type: ignore[method-assign]


def fastest(run: Callable[[], object], repeats: int) -> float:
    """CPU seconds of the fastest repeat: what the machine can do when nobody disturbs it."""
    run()
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        run()
        found.append(time.process_time() - begun)
    return min(found)


def bare_times(case: Case, number: int, length: int, repeats: int) -> tuple[float, float]:
    """CPU seconds of a training step and of embedding `number` sequences with the bare encoder."""
    layer = nn.TransformerEncoderLayer(case.width, case.heads, 2 * case.width, 0.1, batch_first=True, norm_first=True)
    bare = nn.TransformerEncoder(layer, BLOCKS, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    optimizer = torch.optim.Adam(bare.parameters())
    batch, states = torch.randn(case.batch, length, case.width), torch.randn(number, length, case.width)

    def step() -> None:
        bare.train()
        loss = bare(batch, mask=mask, is_causal=True).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @torch.no_grad()
    def forward() -> None:
        bare.eval()
        for part in states.split(max(1, 16384 // length)):
            bare(part, mask=mask, is_causal=True)

    return fastest(step, repeats), fastest(forward, repeats)


def measure(case: Case, number: int, length: int, marks: int, repeats: int) -> dict[str, float]:
    corpus = sequences(number, length, marks, 0)
    queries = sequences(200, length, marks, 1, metadata={"split": ["train"] * 200})
    model = case.make(repeats + 2)
    if isinstance(model, SecondStage):
        model.given = SelfAttention(**two_phases(1)).fit(queries, corpus)
    with step_times() as ended:
        model.fit(queries, corpus)
    if isinstance(model, SecondStage):
        model.correction.strength = 1.0  # random groups leave it nothing to add, yet its time is to be seen
    step = min(np.diff(ended[case.phase or next(iter(ended))])[1:])
    if isinstance(model, Embedder):
        embed = fastest(partial(model.embed, corpus), 3)
    else:
        embed = fastest(partial(model.score, queries[0], corpus), 3)
    bare_step, bare_forward = bare_times(case, number, length, repeats)
    return {
        "training sequences/s": round(case.batch / step),
        "bare training sequences/s": round(case.batch / bare_step),
        "training ratio": round(bare_step / step, 2),
        "embedding sequences/s": round(number / embed),
        "bare embedding sequences/s": round(number / bare_forward),
        "embedding ratio": round(bare_forward / embed, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="all by default")
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--number", type=int, default=1024)
    parser.add_argument("--marks", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    known = {case.method for case in CASES}
    if unknown := set(options.methods) - known:
        parser.error(f"no figures for {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    torch.set_num_threads(1)
    found = {}
    for case in CASES:
        if options.methods and case.method not in options.methods:
            continue
        found[case.label] = row = measure(case, options.number, options.length, options.marks, options.repeats)
        if len(found) == 1:
            print("  ".join(["method".ljust(18), *row]))
        print("  ".join([case.label.ljust(18), *(f"{value:g}".rjust(len(key)) for key, value in row.items())]))
    print(json.dumps({"length": options.length, "marks": options.marks, "methods": found}))


if __name__ == "__main__":
    main()
