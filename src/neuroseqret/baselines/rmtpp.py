r"""RMTPP, the recurrent marked temporal point process.

.. math:: h_i = \tanh(W [E_{x_i}; z_i] + U h_{i-1} + b), \qquad
          \lambda(t_i + \tau) = \exp(v^\top h_i + w \tau + b_t), \qquad p(x_{i+1} = k) = \mathrm{softmax}_k(V h_i + b_x)

where z is the standardised logarithm of the gap. The integral has a closed form,
:math:`\int_0^\tau \lambda = e^{a} (e^{w \tau} - 1) / w` with :math:`a = v^\top h_i + b_t`. As in the authors' code the
exponent is bounded (here also its growth), otherwise one long gap under a rising intensity would outweigh everything
else in a batch; the integral is that of the bounded intensity.

Du et al., "Recurrent marked temporal point processes: embedding event history to vector", KDD 2016.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neuroseqret.baselines.intensity import Events, IntensityProcess
from neuroseqret.baselines.point_process import PointProcessBaseline

MARK_WIDTH, HIDDEN, BPTT = 16, 64, 50  # the authors' recommendation
HIGHEST = 10.0  # bound of the log intensity; e^10 events per mean gap are more than any burst
GROWTH = 5.0  # bound of its growth since the last event; without it one late beat of a regular heart breaks training


class RMTPPNetwork(IntensityProcess):
    """A recurrent state and an exponential intensity; gradients run back through `BPTT` events."""

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.marks, self.width = marks, HIDDEN
        self.mark = nn.Embedding(marks + 1, MARK_WIDTH)  # the last row is for all unknown marks
        self.recurrent = nn.RNN(MARK_WIDTH + 1, HIDDEN, batch_first=True)
        self.level, self.slope = nn.Linear(HIDDEN, 1), nn.Parameter(torch.tensor(-0.1))
        self.mark_logits = nn.Linear(HIDDEN, marks)

    def states(self, events: Events) -> Tensor:
        inputs = torch.cat([self.mark(events.marks), events.log_gaps[..., None]], dim=2)
        parts, hidden = [], None
        for part in inputs.split(BPTT, dim=1):
            states, hidden = self.recurrent(part, hidden)
            hidden = hidden.detach()
            parts.append(states)
        return torch.cat(parts, dim=1)

    def log_intensity(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        level, bound = self._level(states)
        total = torch.minimum(level + self.slope * elapsed, bound)
        return total[..., None] + self.mark_logits(states).log_softmax(-1)

    def compensator(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        level, bound = self._level(states)
        # A rising intensity reaches its bound at this time and is constant from then on.
        until = torch.where(self.slope > 0, (bound - level) / self.slope.clamp(min=1e-12), torch.inf)
        rising = torch.minimum(elapsed, until)
        below = level.exp() * rising * _mean_growth(self.slope * rising)
        return below + (elapsed - rising) * bound.exp()

    def _level(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """The log intensity right after an event, and its upper bound."""
        level = self.level(states)[..., 0].clamp(max=HIGHEST)
        return level, (level + GROWTH).clamp(max=HIGHEST)


def _mean_growth(x: Tensor) -> Tensor:
    """(exp(x) - 1) / x, the mean of exp from 0 to x; by its series if x is small."""
    small = x.abs() < 1e-3
    far = torch.where(small, torch.ones_like(x), x)
    return torch.where(small, 1 + x / 2 + x.square() / 6, torch.expm1(far) / far)


class RMTPP(PointProcessBaseline):
    """Cosine of mean states of a recurrent point process; trained by maximum likelihood alone."""

    name = "rmtpp"
    network_type = RMTPPNetwork
