r"""SAHP, the self-attentive Hawkes process.

The input of event i is :math:`E_{x_i}` plus sines and cosines of :math:`i / 10000^{2j/D} + \omega_j \Delta t_i`, a
position encoding that is shifted by the gaps. Causal self-attention gives :math:`h_i`. The intensity moves
exponentially from a start value to the level that it converges to,

.. math:: \lambda_k(t_i + \tau) = \mathrm{softplus}_{\beta_k}\big(\mu_k + (\eta_k - \mu_k) e^{-\gamma_k \tau}\big), \\
          \mu = \mathrm{gelu}(W_\mu h_i), \quad \eta = \mathrm{gelu}(W_\eta h_i), \quad
          \gamma = \mathrm{softplus}(W_\gamma h_i).

Zhang et al., "Self-attentive Hawkes process", ICML 2020. The sharpness beta comes from EasyTPP: since gelu is
above -0.17, a plain softplus could not go below 0.6 events per mean gap for every mark.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.baselines.attentive import WIDTH, AttentionStack
from neuroseqret.baselines.intensity import Events, IntensityProcess, LogSoftplus
from neuroseqret.baselines.point_process import PointProcessBaseline
from neuroseqret.processes.hawkes_encoder import frequencies, waves


class SAHPNetwork(IntensityProcess):
    """Attention over events at time-shifted positions; each intensity converges to its level."""

    frequency: Tensor

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.marks, self.width = marks, WIDTH
        self.mark = nn.Embedding(marks + 1, WIDTH)  # the last row is for all unknown marks
        self.register_buffer("frequency", frequencies(WIDTH), persistent=False)
        self.shift = nn.Linear(1, WIDTH // 2, bias=False)
        self.attention = AttentionStack()
        self.level, self.start, self.decay = (nn.Linear(WIDTH, marks, bias=False) for _ in range(3))
        self.log_softplus = LogSoftplus(marks)
        for head in (self.level, self.start):
            nn.init.normal_(head.weight, std=0.01)

    def states(self, events: Events) -> Tensor:
        position = torch.arange(events.marks.shape[1], device=events.marks.device)
        angle = position[:, None] * self.frequency + self.shift(events.gaps[..., None])  # (B, L, WIDTH / 2)
        states: Tensor = self.attention(self.mark(events.marks) + waves(angle))
        return states

    def log_intensity(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        level, start = functional.gelu(self.level(states)), functional.gelu(self.start(states))
        decay = functional.softplus(self.decay(states))
        log_rate: Tensor = self.log_softplus(level + (start - level) * torch.exp(-decay * elapsed[..., None]))
        return log_rate


class SAHP(PointProcessBaseline):
    """Cosine of mean states of the Self-Attentive Hawkes Process; trained by maximum likelihood alone."""

    name = "sahp"
    network_type = SAHPNetwork
