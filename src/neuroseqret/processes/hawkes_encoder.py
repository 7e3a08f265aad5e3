r"""The encoder of the Transformer Hawkes Process (Zuo et al. 2020): attention over events at their times.

With t in typical gaps of the data since the start of the sequence, the temporal encoding is

.. math:: \mathrm{wave}(t) = \bigl[\sin(t\, 10000^{-2j/D}),\; \cos(t\, 10000^{-2j/D})\bigr]_{j < D/2}

State 0, which predicts the first event, starts from a learned vector at time 0. The others start from the embedding of
their mark and the gap before them, :math:`y_i = w_{x_i} + w_\Delta\, zg_i + b`, as in the input layer that the paper
writes out (for cross attention): the waves of two large times hardly show the gap between them. The temporal encoding
is added before each of the N_b blocks

.. math:: y \leftarrow y + \mathrm{wave}(t), \qquad y \leftarrow y + \mathrm{Attention}(\mathrm{LN}(y)),
          \qquad y \leftarrow y + \mathrm{FFN}(\mathrm{LN}(y)),

whose attention is causal: h_i has seen events 1 to i and nothing of the whole sequence. A layer norm comes last.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from neuroseqret.processes.encoder import AttentionBlock
from neuroseqret.processes.time_scale import Inputs


class HawkesEncoder(nn.Module):
    """Maps (B, L) events to (B, L + 1, D) states. L has no limit; `max_length` is where callers cut sequences."""

    frequency: Tensor

    def __init__(
        self,
        marks: int,
        width: int = 32,
        blocks: int = 2,
        heads: int = 1,
        dropout: float = 0.2,
        max_length: int = 256,
    ) -> None:
        super().__init__()
        if width % 2:
            raise ValueError(f"the width {width} is odd; sines and cosines need an even one")
        self.marks, self.max_length = marks, max_length
        self.mark = nn.Embedding(marks + 1, width)  # the last row is for all unknown marks
        self.gap = nn.Linear(1, width)
        self.begin = nn.Parameter(torch.randn(width) * 0.1)
        self.register_buffer("frequency", frequencies(width), persistent=False)
        self.blocks = nn.ModuleList(AttentionBlock(width, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.mark.weight, std=0.5)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the states h_0 ... h_L: (B, L + 1, D)."""
        times = nn.functional.pad(inputs.times, (1, 0))  # state 0 is at time 0
        clock = waves(times[..., None] * self.frequency)
        events = self.mark(inputs.marks.clamp(max=self.marks)) + self.gap(inputs.gaps[..., None])  # (B, L, D)
        states = torch.cat([self.begin.expand(len(events), 1, -1), events], dim=1)
        for block in self.blocks:
            states = block(states + clock)
        normal: Tensor = self.norm(states)
        return normal


def frequencies(width: int) -> Tensor:
    """Return 10000^(-2j / width) for j < width / 2, as in the transformer's position encoding."""
    return torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))


def waves(angle: Tensor) -> Tensor:
    """Return sines and cosines of (..., D / 2) angles: (..., D)."""
    return torch.cat([angle.sin(), angle.cos()], dim=-1)
