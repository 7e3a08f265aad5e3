"""Variations of training sequences: random crops, and marks made unknown. Applied to padded batches, without loops."""

from __future__ import annotations

import numpy as np
import torch

from neuroseqret.batching import Batch
from neuroseqret.models.features import Inputs


def crop(batch: Batch, most: int, share: float, rng: np.random.Generator) -> Batch:
    """A random run of events of each sequence: at most `most`, and between `share` and all of them.

    A whole sequence keeps its observation window; a true crop is observed from its first to its last event, or from
    the window's start where it begins there.
    """
    lengths = batch.lengths.numpy()
    kept = np.minimum(lengths, most)
    if share < 1:
        kept = np.maximum(np.ceil(kept * rng.uniform(share, 1.0, len(kept))), np.minimum(kept, 1)).astype(np.int64)
    if (kept == lengths).all():
        return batch
    first = torch.from_numpy((rng.random(len(kept)) * (lengths - kept + 1)).astype(np.int64))
    number = torch.from_numpy(kept)
    width = int(kept.max())
    index = (first[:, None] + torch.arange(width)).clamp(max=batch.times.shape[1] - 1)
    inside = torch.arange(width) < number[:, None]
    times, marks = batch.times.gather(1, index), batch.marks.gather(1, index)
    start = torch.where(first > 0, times[:, 0], torch.zeros_like(times[:, 0]))
    last = times.gather(1, (number - 1).clamp(min=0)[:, None])[:, 0]
    spans = torch.where(number == batch.lengths, batch.spans, last - start)
    times = torch.where(inside, times - start[:, None], torch.zeros_like(times))
    return Batch(batch.rows, times, torch.where(inside, marks, torch.zeros_like(marks)), number, spans)


def forget_marks(inputs: Inputs, share: float, unknown: int) -> Inputs:
    """The inputs with a random share of marks replaced by `unknown` (torch's generator)."""
    if not share:
        return inputs
    hidden = torch.rand(inputs.marks.shape) < share
    marks = torch.where(hidden & inputs.mask, torch.full_like(inputs.marks, unknown), inputs.marks)
    return Inputs(inputs.values, marks, inputs.mask, inputs.timed, inputs.gaps, inputs.tail, inputs.open_end)
