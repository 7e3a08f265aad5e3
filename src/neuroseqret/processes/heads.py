r"""Heads of the point process: log-normal gaps and softmax marks, predicted from the state before the event.

.. math:: [\mu_i, s_i] = W_t h_{i-1} + b_t, \quad \sigma_i = e^{s_i}, \quad
          p(\Delta t_i) = \mathrm{LogNormal}(\mu_i, \sigma_i^2), \quad p(x_i) = \mathrm{softmax}(W_x h_{i-1} + b_x)

Gaps are standardised by the time scale of the data (`TimeScale`): the head models zg as a normal variable. The density
of the raw gap has a further factor :math:`1/(sd (\Delta t + \epsilon))`, which does not depend on the heads. Training
leaves it out, because a learned unwarping would shrink all gaps to increase it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from neuroseqret.processes.time_scale import Inputs

LARGEST_LOG_SIGMA = 3.0
_HALF_LOG_2_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class NextEvent:
    """Distributions of the event after each state: (B, S) for S states."""

    mu: Tensor  # (B, S) mean of zg
    sigma: Tensor  # (B, S)
    log_marks: Tensor  # (B, S, marks)


class NextEventHeads(nn.Module):
    """The linear heads; by default the Fisher vector is the gradient by their parameters."""

    def __init__(self, marks: int, width: int) -> None:
        super().__init__()
        self.marks = marks
        self.gap, self.mark = nn.Linear(width, 2), nn.Linear(width, marks)
        for linear in (self.gap, self.mark):
            nn.init.normal_(linear.weight, std=0.1)
            nn.init.zeros_(linear.bias)

    def forward(self, states: Tensor) -> NextEvent:
        """Return the distributions of the event after each state."""
        mu, log_sigma = self.gaps(states)
        return NextEvent(mu, log_sigma.exp(), self.mark(states).log_softmax(-1))

    def gaps(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log sigma of the gap after each state: (B, S) each."""
        mu, log_sigma = self.gap(states).unbind(-1)
        # A smooth bound keeps sigma from vanishing (ties) and from exploding, and has an exact gradient.
        return mu, LARGEST_LOG_SIGMA * torch.tanh(log_sigma / LARGEST_LOG_SIGMA)

    def log_likelihood(self, inputs: Inputs, states: Tensor, survival: bool = True) -> Tensor:
        r"""Return log p(H) of each sequence without the factor of the raw gap: (B,).

        `survival` adds :math:`\log P(\text{no event until the window's end} \mid h_n)` if the window ends after the
        last event.
        """
        after = self(states)
        z = (inputs.gaps - after.mu[:, :-1]) / after.sigma[:, :-1]
        gap = -0.5 * z.square() - after.sigma[:, :-1].log() - _HALF_LOG_2_PI
        known = inputs.mask & (inputs.marks < self.marks)
        mark = after.log_marks[:, :-1].gather(2, inputs.marks.clamp(max=self.marks - 1)[:, :, None])[:, :, 0]
        total = (gap * inputs.timed).sum(1) + (mark * known).sum(1)
        return total + self._survival(inputs, after) if survival else total

    @staticmethod
    def _survival(inputs: Inputs, after: NextEvent) -> Tensor:
        last = inputs.lengths[:, None]
        mu, sigma = after.mu.gather(1, last)[:, 0], after.sigma.gather(1, last)[:, 0]
        return torch.special.log_ndtr((mu - inputs.tail) / sigma) * inputs.open_end
