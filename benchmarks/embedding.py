"""Speed of the self-attention model beside a bare torch TransformerEncoder of the same size, one core, in one run.

    python benchmarks/embedding.py

Embedding (inputs, encoder, Fisher vector, Markov-renewal features, projection) is compared with the bare encoder's
forward pass alone, a training step with its forward, backward and Adam step. Both see sequences of the same length and
batches of the same size. Beyond 64 events that is not the same work: the model encodes blocks of 64 (and trains on runs
of 64), the bare encoder attends over the whole length. Prints one JSON line a length.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.self_attention.fitting import Fitting
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.training.task import TrainingTask


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
    parser.add_argument("--length", type=int, nargs="+", default=[60, 100, 200])
    parser.add_argument("--number", type=int, default=1024)
    parser.add_argument("--marks", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for length in options.length:
        print(json.dumps(measure(length, options.number, options.marks, options.repeats)), flush=True)


def measure(length: int, number: int, marks: int, repeats: int) -> dict[str, float]:
    """Both ratios for sequences of one length."""
    corpus = sequences(number, length, marks, 0)
    queries = sequences(200, length, marks, 1, metadata={"split": ["train"] * 200})
    model = SelfAttention()
    model.scale_on(corpus)
    model._build()
    model.network.update_whitening(model.network.raw(next(iter(model.prepared(corpus)))[1]))
    model.network.eval()
    width = model.settings.encoder.width
    layer = nn.TransformerEncoderLayer(width, 1, 2 * width, 0.1, batch_first=True, norm_first=True)
    bare = nn.TransformerEncoder(layer, model.settings.encoder.blocks, enable_nested_tensor=False)
    mask = nn.Transformer.generate_square_subsequent_mask(length)

    rows = max(1, 16384 // length)
    states = torch.randn(number, length, width)

    @torch.no_grad()
    def bare_forward() -> None:
        bare.eval()
        for part in states.split(rows):
            bare(part, mask=mask, is_causal=True)

    embed, forward, embedding_ratio = taking_turns(lambda: model.embed(corpus), bare_forward, repeats)

    markov = (model._markov_of(queries), model._markov_of(corpus))
    assert markov[0] is not None
    assert markov[1] is not None
    task = TrainingTask.of(queries, corpus, needs_labels=True)
    fitting = Fitting(model.network, model.scale, model.settings, task, (markov[0], markov[1]))
    sampler = fitting._sampler(model.settings.batch.size)
    optimizer = torch.optim.AdamW(model.network.parameters(), fused=True)
    bare_optimizer = torch.optim.Adam(bare.parameters())
    batch = torch.randn(2 * model.settings.batch.size, length, width)

    def step() -> None:
        model.network.train()
        loss = fitting.joint_loss(sampler.batch(0), 0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.network.parameters(), 1.0)
        optimizer.step()

    def bare_step() -> None:
        bare.train()
        loss = bare(batch, mask=mask, is_causal=True).square().mean()
        bare_optimizer.zero_grad()
        loss.backward()
        bare_optimizer.step()

    mine, theirs, step_ratio = taking_turns(step, bare_step, repeats)
    return {
        "length": length,
        "embedding sequences/s": round(number / embed),
        "bare forward sequences/s": round(number / forward),
        "embedding ratio (at least 0.7)": round(embedding_ratio, 2),
        "training step ms": round(1e3 * mine, 1),
        "bare step ms": round(1e3 * theirs, 1),
        "training ratio (at most 1.5)": round(1 / step_ratio, 2),
    }


if __name__ == "__main__":
    main()
