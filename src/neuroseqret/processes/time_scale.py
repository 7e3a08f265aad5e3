"""The time scale of the data, and the network inputs of padded events.

The scale is fitted once, on the corpus, and saved with the model. Gaps are taken as :math:`\\log(g + \\epsilon)`, so
that ties are finite, and standardised over all events. The network gets two views of time, because the rate of events
carries information in some data and not in others: `zg` keeps the rate (one global scale), `zs` subtracts the mean of
the sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from neuroseqret.data.sequences import EventSequences, FloatArray

if TYPE_CHECKING:  # a model card holds a `TimeScale` and must be read without importing torch
    import torch
    from torch import Tensor

    from neuroseqret.data.batching import Batch

#: First columns of `Inputs.values`: zg, zs, t/T, and (zg^2 - 1)/4, (zs^2 - 1)/4; then those of `Batch.values`.
INPUT_WIDTH = 5
_FAR = 6.0  # standardised values are clipped here, so that an extreme gap counts as a long one and no more
_FAR_TIME = 1e9  # times are clipped here, in typical gaps


class TimeScale(BaseModel):
    """The time scale of some data: zg = (log(gap + eps) - mean) / sd."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    eps: float = Field(ge=0)
    mean: float = Field(ge=-746, le=710)  # logs of the smallest and of the largest number
    sd: float = Field(gt=0)

    @classmethod
    def fit(cls, sequences: EventSequences) -> TimeScale:
        r"""Fit eps = max(half the 2 % quantile of the positive gaps, 1e-3 of their median), and mean and sd of
        log(gap + eps).

        The gap before a first event counts only if the window starts before it.
        """
        gaps = gaps_of(sequences)
        counted = gaps[np.isfinite(gaps)]
        positive = counted[counted > 0]
        if not len(positive):
            return cls(eps=1.0, mean=0.0, sd=1.0)  # all events are tied
        eps = max(0.5 * float(np.quantile(positive, 0.02)), 1e-3 * float(np.median(positive)))
        logs = np.log(counted + eps)
        return cls(eps=eps, mean=float(logs.mean()), sd=float(max(logs.std(), 1e-3)))

    @property
    def typical_gap(self) -> float:
        """exp(mean of the log gaps): the unit in which an encoder reads times."""
        return float(np.exp(self.mean))

    def standardise(self, gaps: Tensor) -> Tensor:
        """Return zg of gaps, clipped, float32."""
        import torch

        z = ((gaps.to(torch.float64).clamp(min=0.0) + self.eps).log() - self.mean) / self.sd
        return z.clamp(-_FAR, _FAR).float()

    def inputs(self, batch: Batch) -> Inputs:
        """Return the network inputs of a padded batch; sequences are independent, padding is zero."""
        import torch

        mask = batch.mask
        gaps = batch.gaps
        timed = mask.clone()
        if timed.shape[1]:
            timed[:, 0] &= gaps[:, 0] > 0  # a window that starts at its first event has no first gap
        zg = self.standardise(gaps) * mask
        number = timed.sum(1, keepdim=True).clamp(min=1)
        level = (zg * timed).sum(1, keepdim=True) / number
        zg = torch.where(mask & ~timed, level, zg)  # a missing gap counts as an average one
        zs = (zg - level) * mask
        span = batch.spans.clamp(min=torch.finfo(torch.float64).tiny)[:, None]
        phase = (batch.times / span).clamp(0, 1).float() * mask
        values = torch.stack([zg, zs, phase, (zg.square() - 1) / 4 * mask, (zs.square() - 1) / 4 * mask], dim=2)
        values = values if batch.values is None else torch.cat([values, batch.values], dim=2)
        last = batch.times.gather(1, (batch.lengths - 1).clamp(min=0)[:, None])[:, 0] if mask.shape[1] else batch.spans
        rest = (batch.spans - last).clamp(min=0.0)
        return Inputs(
            values,
            batch.marks,
            mask,
            timed,
            zg,
            self.standardise(rest),
            (rest > 0) & (batch.lengths > 0),
            (batch.times / self.typical_gap).clamp(max=_FAR_TIME).float(),
        )


@dataclass(frozen=True)
class Inputs:
    """The inputs of encoder and heads for B sequences with up to L events."""

    values: Tensor  # (B, L, 5 + V) float32
    marks: Tensor  # (B, L) int64
    mask: Tensor  # (B, L) bool: there is an event
    timed: Tensor  # (B, L) bool: there is an event with a gap before it
    gaps: Tensor  # (B, L) float32: standardised log gaps, which the heads predict
    tail: Tensor  # (B,) float32: standardised log time from the last event to the end of the window
    open_end: Tensor  # (B,) bool: the window ends after the last event
    times: Tensor  # (B, L) float32: since the start, in typical gaps

    @property
    def lengths(self) -> Tensor:
        """The number of events of each sequence: (B,)."""
        return self.mask.sum(1)

    def __len__(self) -> int:
        return len(self.values)

    def to(self, device: torch.device | str) -> Inputs:
        """Return the inputs on another device."""
        return Inputs(*(x.to(device) for x in vars(self).values()))


def gaps_of(sequences: EventSequences) -> FloatArray:
    """Return the gap before every event: (events,); NaN for a first event at the start of its window."""
    times, offsets = sequences.times, sequences.offsets
    gaps = np.empty_like(times)
    np.subtract(times[1:], times[:-1], out=gaps[1:])
    filled = sequences.lengths > 0
    first = offsets[:-1][filled]
    begun = times[first] - sequences.observed()[0][filled]
    gaps[first] = np.where(begun > 0, begun, np.nan)
    return gaps
