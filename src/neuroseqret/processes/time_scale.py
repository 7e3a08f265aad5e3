"""From padded events to numbers a network can take: the data's time scale, and the inputs of every event.

The scale is fitted once, on the corpus, and saved with the model: gaps are taken as :math:`\\log(g + \\epsilon)`, so
that ties are finite, and standardised over all events. Both views of time go in, because rate is signal in some
data and a nuisance in other: `zg` keeps it (one global scale), `zs` subtracts the sequence's own mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from neuroseqret.data.batching import Batch
from neuroseqret.data.sequences import EventSequences, FloatArray

#: Columns of `Inputs.values`: zg, zs, t/T, and (zg^2 - 1)/4, (zs^2 - 1)/4.
INPUT_WIDTH = 5
_FAR = 6.0  # standardised values are clipped here: a gap of another order of magnitude is still only a long gap


class TimeScale(BaseModel):
    """How this data's clock runs: zg = (log(gap + eps) - mean) / sd."""

    model_config = ConfigDict(frozen=True)

    eps: float
    mean: float
    sd: float

    @classmethod
    def fit(cls, sequences: EventSequences) -> TimeScale:
        r"""eps = max(half the 2 % quantile of the positive gaps, 1e-3 of their median); mean and sd of log(gap + eps).

        The first event's gap to the window's start counts only where the window starts before it.
        """
        gaps = gaps_of(sequences)
        counted = gaps[np.isfinite(gaps)]
        positive = counted[counted > 0]
        if not len(positive):
            return cls(eps=1.0, mean=0.0, sd=1.0)  # no clock at all: every gap is a tie
        eps = max(0.5 * float(np.quantile(positive, 0.02)), 1e-3 * float(np.median(positive)))
        logs = np.log(counted + eps)
        return cls(eps=eps, mean=float(logs.mean()), sd=float(max(logs.std(), 1e-3)))

    def standardise(self, gaps: Tensor) -> Tensor:
        """zg of gaps, float32, clipped."""
        z = ((gaps.to(torch.float64).clamp(min=0.0) + self.eps).log() - self.mean) / self.sd
        return z.clamp(-_FAR, _FAR).float()

    def inputs(self, batch: Batch) -> Inputs:
        """Network inputs of a padded batch; sequences are independent, padding is zero."""
        mask = batch.mask
        gaps = batch.gaps
        timed = mask.clone()
        if timed.shape[1]:
            timed[:, 0] &= gaps[:, 0] > 0  # a window that starts at its first event has no first gap
        zg = self.standardise(gaps) * mask
        number = timed.sum(1, keepdim=True).clamp(min=1)
        level = (zg * timed).sum(1, keepdim=True) / number
        zg = torch.where(mask & ~timed, level, zg)  # an absent gap is an average one
        zs = (zg - level) * mask
        span = batch.spans.clamp(min=torch.finfo(torch.float64).tiny)[:, None]
        phase = (batch.times / span).clamp(0, 1).float() * mask
        values = torch.stack([zg, zs, phase, (zg.square() - 1) / 4 * mask, (zs.square() - 1) / 4 * mask], dim=2)
        last = batch.times.gather(1, (batch.lengths - 1).clamp(min=0)[:, None])[:, 0] if mask.shape[1] else batch.spans
        rest = (batch.spans - last).clamp(min=0.0)
        return Inputs(values, batch.marks, mask, timed, zg, self.standardise(rest), (rest > 0) & (batch.lengths > 0))


@dataclass(frozen=True)
class Inputs:
    """What the encoder and the heads see of B sequences with up to L events."""

    values: Tensor  # (B, L, 5) float32
    marks: Tensor  # (B, L) int64
    mask: Tensor  # (B, L) bool: an event
    timed: Tensor  # (B, L) bool: an event with a gap before it
    gaps: Tensor  # (B, L) float32: standardised log gaps, the heads' target
    tail: Tensor  # (B,) float32: standardised log time from the last event to the window's end
    open_end: Tensor  # (B,) bool: the window goes on after the last event

    @property
    def lengths(self) -> Tensor:
        return self.mask.sum(1)

    def __len__(self) -> int:
        return len(self.values)

    def to(self, device: torch.device | str) -> Inputs:
        """The same on another device."""
        return Inputs(*(x.to(device) for x in vars(self).values()))


def gaps_of(sequences: EventSequences) -> FloatArray:
    """Gap before every event, flat: (events,); NaN for a first event at its window's start (it has none)."""
    times, offsets = sequences.times, sequences.offsets
    gaps = np.diff(times, prepend=times[:1])
    filled = sequences.lengths > 0
    first = offsets[:-1][filled]
    begun = times[first] - sequences.observed()[0][filled]
    gaps[first] = np.where(begun > 0, begun, np.nan)
    return gaps
