r"""A marked point process given by its intensity: what RMTPP, SAHP and THP share as networks.

A network turns events into states, :math:`h_i` after event i, and states into the intensity of every mark k until the
next event, :math:`\lambda_k(t_i + \tau \mid h_i)`. The likelihood of the events after the first is

.. math:: \log p(H) = \sum_{i=2}^{n} \Big[
          \log \lambda_{x_i}(t_i) - \int_{t_{i-1}}^{t_i} \sum_k \lambda_k(t)\, dt \Big].

Time runs in units of the corpus' mean gap, so that intensities are near 1 whatever the data's clock.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.data.batching import Batch
from neuroseqret.processes.time_scale import TimeScale

SAMPLES = 8  # of the intensity in each gap, for the integral


@dataclass(frozen=True)
class Events:
    """B sequences of up to L events as a point process sees them; padding is 0."""

    times: Tensor  # (B, L) float32: since the start, in mean gaps
    gaps: Tensor  # (B, L) float32: since the event before (or the start), in mean gaps
    log_gaps: Tensor  # (B, L) float32: standardised logarithm, for networks that read gaps
    marks: Tensor  # (B, L) int64; the number of known marks stands for any unknown one
    mask: Tensor  # (B, L) bool

    @classmethod
    def of(cls, batch: Batch, unit: float, scale: TimeScale, marks: int) -> Events:
        mask, gaps = batch.mask, batch.gaps
        return cls(
            times=(batch.times / unit).float(),
            gaps=(gaps / unit).float(),
            log_gaps=scale.standardise(gaps) * mask,
            marks=batch.marks.clamp(max=marks),
            mask=mask,
        )

    @property
    def predicted(self) -> Tensor:
        """(B, L - 1): which of the second, third, ... positions hold an event."""
        return self.mask[:, 1:]


class PointProcess(nn.Module):
    """States and intensities; a subclass gives both, and the integral where it has a closed form."""

    width: int  # of a state
    marks: int

    @abstractmethod
    def states(self, events: Events) -> Tensor:
        """(B, L, width): the state after each event, from it and those before it alone."""

    @abstractmethod
    def log_intensity(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        """log lambda_k at `elapsed` after an event at `times` that left `states`: (..., marks).

        `elapsed` and `times` are (...), `states` is (..., width).
        """

    def compensator(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        """Integral of the total intensity over the `elapsed` time: (...).

        Mean over `SAMPLES` places, one in each equal part: anywhere in it while training, so that the estimate is
        right on average (Monte Carlo, as in the originals), its middle otherwise.
        """
        place = torch.arange(SAMPLES, device=elapsed.device) + (
            torch.rand(*elapsed.shape, SAMPLES, device=elapsed.device) if self.training else 0.5
        )
        since = elapsed[..., None] * place / SAMPLES
        log_rate = self.log_intensity(states[..., None, :], since, times[..., None])
        return elapsed * log_rate.exp().sum(-1).mean(-1)

    def log_likelihood(self, events: Events, states: Tensor | None = None) -> Tensor:
        """log p of each sequence's events after the first: (B,); 0 for a single event."""
        states = self.states(events) if states is None else states
        before, elapsed, times = states[:, :-1], events.gaps[:, 1:], events.times[:, :-1]
        marks = events.marks[:, 1:]
        log_rate = self.log_intensity(before, elapsed, times)  # (B, L - 1, marks)
        chosen = log_rate.gather(-1, marks.clamp(max=self.marks - 1)[..., None])[..., 0]
        # The rate of a mark that was not there in training is not known: such an event says only when it came.
        chosen = torch.where(marks < self.marks, chosen, log_rate.logsumexp(-1))
        each = chosen - self.compensator(before, elapsed, times)
        return torch.where(events.predicted, each, torch.zeros_like(each)).sum(1)

    def pooled(self, events: Events, states: Tensor) -> Tensor:
        """The sequence as one unit vector, its mean state: (B, width)."""
        number = events.mask.sum(1, keepdim=True).clamp(min=1)
        return functional.normalize((states * events.mask[..., None]).sum(1) / number, dim=1)


class LogSoftplus(nn.Module):
    r"""Logarithm of :math:`\beta_k^{-1} \log(1 + e^{\beta_k x})`, with a learned sharpness for each mark.

    It begins where x = 0 gives all marks together one event in a mean gap.
    """

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.log_beta = nn.Parameter(torch.full((marks,), marks * math.log(2.0)).log())

    def forward(self, x: Tensor) -> Tensor:
        scaled = x * self.log_beta.exp()
        # Far below 0 softplus is exp, and its logarithm the argument itself; computed so it never underflows.
        above = functional.softplus(scaled.clamp(min=-15.0)).log()
        return torch.where(scaled > -15.0, above, scaled) - self.log_beta
