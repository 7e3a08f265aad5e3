r"""A marked point process defined by its intensity: the networks of RMTPP, SAHP and THP have this in common.

A network turns events into states, :math:`h_i` after event i, and states into the intensity of every mark k until the
next event, :math:`\lambda_k(t_i + \tau \mid h_i)`. The likelihood of the events after the first is

.. math:: \log p(H) = \sum_{i=2}^{n} \Big[
          \log \lambda_{x_i}(t_i) - \int_{t_{i-1}}^{t_i} \sum_k \lambda_k(t)\, dt \Big].

Time is measured in mean gaps of the corpus, so that intensities are near 1 whatever the unit of the data is.
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
    """B sequences of up to L events as a point process reads them; padding is 0."""

    times: Tensor  # (B, L) float32: since the start, in mean gaps
    gaps: Tensor  # (B, L) float32: since the previous event (or the start), in mean gaps
    log_gaps: Tensor  # (B, L) float32: standardised logarithm, for networks that read gaps
    marks: Tensor  # (B, L) int64; all unknown marks have the number after the last known one
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

    def to(self, device: torch.device | str) -> Events:
        """Return the events on another device."""
        return Events(*(x.to(device) for x in vars(self).values()))

    @property
    def predicted(self) -> Tensor:
        """(B, L - 1): which of the second, third, ... positions hold an event."""
        return self.mask[:, 1:]


class IntensityProcess(nn.Module):
    """Computes states and intensities. A subclass defines both, and the integral where it has a closed form."""

    width: int  # of a state
    marks: int

    @abstractmethod
    def states(self, events: Events) -> Tensor:
        """(B, L, width): the state after each event, which depends on this and earlier events only."""

    @abstractmethod
    def log_intensity(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        """log lambda_k at `elapsed` after an event at `times` that left `states`: (..., marks).

        `elapsed` and `times` are (...), `states` is (..., width).
        """

    def compensator(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        """Integral of the total intensity over the `elapsed` time: (...).

        Mean over `SAMPLES` places, one in each of as many equal parts: at random within it in training, so that the
        estimate is unbiased (Monte Carlo, as in the originals), in its middle otherwise.
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
        # A mark that training never saw has no rate of its own: only the time of such an event counts.
        chosen = torch.where(marks < self.marks, chosen, log_rate.logsumexp(-1))
        each = chosen - self.compensator(before, elapsed, times)
        return torch.where(events.predicted, each, torch.zeros_like(each)).sum(1)

    def pooled(self, events: Events, states: Tensor) -> Tensor:
        """Each sequence as one unit vector, its normalised mean state: (B, width)."""
        number = events.mask.sum(1, keepdim=True).clamp(min=1)
        return functional.normalize((states * events.mask[..., None]).sum(1) / number, dim=1)


class LogSoftplus(nn.Module):
    r"""Logarithm of :math:`\beta_k^{-1} \log(1 + e^{\beta_k x})`, with a learned sharpness for each mark.

    Its first sharpness is such that x = 0 gives all marks together one event per mean gap.
    """

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.log_beta = nn.Parameter(torch.full((marks,), marks * math.log(2.0)).log())

    def forward(self, x: Tensor) -> Tensor:
        scaled = x * self.log_beta.exp()
        # Far below 0 softplus equals exp, so its logarithm is the argument; computed this way it never underflows.
        above = functional.softplus(scaled.clamp(min=-15.0)).log()
        return torch.where(scaled > -15.0, above, scaled) - self.log_beta
