r"""THP, the transformer Hawkes process.

The input of event i is :math:`E_{x_i}` plus sines and cosines of :math:`t_i / 10000^{2j/D}`. Causal self-attention
gives :math:`h_i`. The intensity until the next event is

.. math:: \lambda_k(t_i + \tau) = \mathrm{softplus}_{\beta_k}
          \Big(\alpha_k \frac{\tau}{t_i + 1} + w_k^\top h_i + b_k\Big).

The paper divides by :math:`t_i`, which is 0 if the window starts with an event; the authors' code adds 1, as does this.

Zuo et al., "Transformer Hawkes process", ICML 2020.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neuroseqret.baselines.attentive import WIDTH, AttentionStack
from neuroseqret.baselines.intensity import Events, IntensityProcess, LogSoftplus
from neuroseqret.baselines.point_process import PointProcessBaseline
from neuroseqret.processes.hawkes_encoder import frequencies, waves


class THPNetwork(IntensityProcess):
    """Attention over events at their times; the intensity changes almost linearly until the next event."""

    frequency: Tensor

    def __init__(self, marks: int) -> None:
        super().__init__()
        self.marks, self.width = marks, WIDTH
        self.mark = nn.Embedding(marks + 1, WIDTH)  # the last row is for all unknown marks
        self.register_buffer("frequency", frequencies(WIDTH), persistent=False)
        self.attention = AttentionStack()
        self.base, self.drift = nn.Linear(WIDTH, marks), nn.Parameter(torch.full((marks,), -0.1))
        self.log_softplus = LogSoftplus(marks)
        nn.init.normal_(self.base.weight, std=0.01)
        nn.init.zeros_(self.base.bias)

    def states(self, events: Events) -> Tensor:
        states: Tensor = self.attention(self.mark(events.marks) + waves(events.times[..., None] * self.frequency))
        return states

    def log_intensity(self, states: Tensor, elapsed: Tensor, times: Tensor) -> Tensor:
        log_rate: Tensor = self.log_softplus(self.drift * (elapsed / (times + 1))[..., None] + self.base(states))
        return log_rate


class THP(PointProcessBaseline):
    """Cosine of mean states of the Transformer Hawkes Process; trained by maximum likelihood alone."""

    name = "thp"
    network_type = THPNetwork
