"""Speed of embedding beside a bare torch TransformerEncoder of two layers and width 64, one core, in one run.

    python benchmarks/embedding.py

Many sequences at once, one query at a time, and one query from raw events to ten hits in an index of all sequences. Our
side is `embed`, from raw events to embeddings: tables, bank of convolutions, metric; and `Index.search`. The other side
is the forward pass of the encoder alone. Prints one JSON line per length.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import nn

from neuroseqret.data.sequences import EventSequences
from neuroseqret.index import Index
from neuroseqret.models.self_attention.model import SelfAttention

WIDTH = 64


def sequences(number: int, length: int, marks: int, seed: int, **columns: object) -> EventSequences:
    rng = np.random.default_rng(seed)
    times = rng.lognormal(0, 1, (number, length)).cumsum(1)
    return EventSequences.from_arrays(
        times.ravel(),
        rng.integers(0, marks, number * length),
        np.arange(number + 1) * length,
        ids=[f"{seed}-{i}" for i in range(number)],
        groups=[f"g{i % 20}" for i in range(number)],
        validate=False,
        **columns,  # type: ignore[arg-type]
    )


def taking_turns(one: Callable[[], object], other: Callable[[], object], repeats: int) -> tuple[float, float, float]:
    """Median CPU seconds of each, and the median over turns of other / one.

    They take turns, and the ratio is one of neighbours: a slow spell of the machine meets both.
    """
    seconds = np.empty((repeats + 1, 2))
    for turn in seconds:
        for which, run in enumerate((one, other)):
            begun = time.process_time()
            run()
            turn[which] = time.process_time() - begun
    measured = seconds[1:]  # the first turn warms up
    return *np.median(measured, 0), float(np.median(measured[:, 1] / measured[:, 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--number", type=int, default=1024)
    parser.add_argument("--marks", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for length in options.length:
        print(json.dumps(measure(length, options.number, options.marks, options.repeats)), flush=True)


def measure(length: int, number: int, marks: int, repeats: int) -> dict[str, float]:
    """Return rates and ratios for sequences of one length."""
    corpus = sequences(number, length, marks, 0)
    queries = sequences(200, length, marks, 1, metadata={"split": ["train"] * 200})
    model = SelfAttention(head={"steps": 2}, selection=None).fit(queries, corpus)
    layer = nn.TransformerEncoderLayer(WIDTH, 1, 2 * WIDTH, 0.1, batch_first=True, norm_first=True)
    bare = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(length)
    states = torch.randn(number, length, WIDTH)
    asked = [queries[row : row + 1] for row in range(50)]

    @torch.inference_mode()
    def forward(rows: int, parts: int) -> None:
        for part in states[: rows * parts].split(rows):
            bare(part, mask=mask, is_causal=True)

    def ten_hits(index: Index) -> None:
        for query in asked:
            index.search(query, 10)

    together = max(1, 16384 // length)
    many = taking_turns(lambda: model.embed(corpus), lambda: forward(together, -(-number // together)), repeats)
    one = taking_turns(lambda: [model.embed(query, "query") for query in asked], lambda: forward(1, 50), repeats)
    with TemporaryDirectory() as folder:
        Index.create(model, Path(folder) / "index", corpus).compact()
        opened = Index.open(Path(folder) / "index")
        hits = taking_turns(lambda: ten_hits(opened), lambda: forward(1, 50), repeats)
    return {
        "length": length,
        "sequences/s": round(number / many[0]),
        "bare sequences/s": round(number / many[1]),
        "bulk: bare time / our time": round(many[2], 2),
        "one query, ms": round(1e3 * one[0] / 50, 2),
        "bare, ms": round(1e3 * one[1] / 50, 2),
        "one query: our time / bare time": round(1 / one[2], 2),
        "ten hits, ms": round(1e3 * hits[0] / 50, 2),
        "ten hits: our time / bare time": round(1 / hits[2], 2),
    }


if __name__ == "__main__":
    main()
