r"""Causal self-attention over events: state :math:`h_i` encodes the inputs of events 1 to i and predicts event i + 1.

(Two inputs of an event depend on the whole sequence: its gap relative to the mean gap, and its place in the window.)

The input of event i is :math:`y_i = E_{x_i} + W [zg_i, zs_i, t_i/T, \dots] + p_i`; the brackets hold declared values of
the event too. State 0, which predicts the first event, starts from a learned vector. Then come N_b blocks

.. math:: y \leftarrow y + \mathrm{Attention}(\mathrm{LN}(y)), \qquad y \leftarrow y + \mathrm{FFN}(\mathrm{LN}(y)),

and a last layer norm. Sequences are right-padded, so the causal mask alone keeps the padding out of every state. All
marks unseen in training share one embedding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.processes.dropout import Dropout
from neuroseqret.processes.time_scale import INPUT_WIDTH, Inputs


class EventEncoder(nn.Module):
    """Maps (B, L) events to (B, L + 1, D) states. L is at most `max_length`; longer sequences are split into blocks."""

    def __init__(
        self,
        marks: int,
        width: int = 32,
        blocks: int = 2,
        heads: int = 1,
        dropout: float = 0.1,
        max_length: int = 256,
        values: int = 0,
    ) -> None:
        super().__init__()
        self.marks, self.max_length = marks, max_length
        self.mark = nn.Embedding(marks + 1, width)  # the last row is for all unknown marks
        self.value = nn.Linear(INPUT_WIDTH + values, width)
        self.position = nn.Parameter(torch.randn(max_length + 1, width) * 0.1)
        self.dropout = Dropout(dropout)
        self.blocks = nn.ModuleList(AttentionBlock(width, heads, dropout) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.mark.weight, std=0.5)

    def forward(self, inputs: Inputs) -> Tensor:
        """Return the states h_0 ... h_L: (B, L + 1, D)."""
        length = inputs.marks.shape[1]
        events = self.value(inputs.values).add_(self.mark(inputs.marks.clamp(max=self.marks)))  # (B, L, D)
        begin = self.position[:1].expand(len(events), 1, -1)
        states = torch.cat([begin, events.add_(self.position[1 : length + 1])], dim=1)
        states = self.dropout(states)
        for block in self.blocks:
            states = block(states)
        normal: Tensor = self.norm(states)
        return normal


class AttentionBlock(nn.Module):
    """One pre-norm block: causal attention, then a feed-forward network twice as wide."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"the width {width} is no multiple of the number of heads {heads}")
        self.heads = heads
        self.norm_attention, self.norm_forward = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.dropout = Dropout(dropout)

    def forward(self, states: Tensor) -> Tensor:
        # Add in place, into the layer's fresh output: small layers spend most of their time on new memory.
        states = self.dropout(self.out(self.attend(self.norm_attention(states)))).add_(states)
        inner = torch.relu_(self.widen(self.norm_forward(states)))
        updated: Tensor = self.dropout(self.narrow(inner)).add_(states)
        return updated

    def attend(self, states: Tensor) -> Tensor:
        """Return causal multi-head attention of the states to themselves: (B, L, D) -> (B, L, D)."""
        size, length, width = states.shape
        mixed = self.query_key_value(states).view(size, length, 3, self.heads, width // self.heads)
        query, key, value = mixed.permute(2, 0, 3, 1, 4)  # each (B, heads, L, D / heads)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return attended.transpose(1, 2).reshape(size, length, width)
