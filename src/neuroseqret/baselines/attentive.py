"""The causal self-attention of SAHP and THP: dimension 128, two heads, two blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from neuroseqret.processes.encoder import AttentionBlock

WIDTH, HEADS = 128, 2  # as in the paper
BLOCKS, DROPOUT = 2, 0.1


class AttentionStack(nn.Module):
    """Maps (B, L, WIDTH) to (B, L, WIDTH); each position sees itself and earlier ones."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(AttentionBlock(WIDTH, HEADS, DROPOUT) for _ in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, states: Tensor) -> Tensor:
        for block in self.blocks:
            states = block(states)
        normal: Tensor = self.norm(states)
        return normal


def frequencies() -> Tensor:
    """10000^(-2j / WIDTH) for j < WIDTH / 2, as in the transformer's position encoding."""
    return torch.exp(torch.arange(0, WIDTH, 2) * (-math.log(10000.0) / WIDTH))


def waves(angle: Tensor) -> Tensor:
    """Sines and cosines of (..., WIDTH / 2) angles: (..., WIDTH)."""
    return torch.cat([angle.sin(), angle.cos()], dim=-1)
