"""Random crops of the sequences of a padded batch, for training."""

from __future__ import annotations

import numpy as np
import torch

from neuroseqret.data.batching import Batch


def crop(batch: Batch, most: int, rng: np.random.Generator) -> Batch:
    """Return a random run of at most `most` events of each sequence.

    A sequence that stays whole keeps its observation window. The window of a crop runs from its first event (or from
    the start of the window, if the crop starts with the sequence) to its last event.
    """
    lengths = batch.lengths.numpy()
    kept = np.minimum(lengths, most)
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
    values = None
    if batch.values is not None:
        of_events = batch.values.gather(1, index[:, :, None].expand(-1, -1, batch.values.shape[2]))
        values = torch.where(inside[:, :, None], of_events, torch.zeros_like(of_events))
    return Batch(batch.rows, times, torch.where(inside, marks, torch.zeros_like(marks)), number, spans, values)
