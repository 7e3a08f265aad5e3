"""The causal self-attention of SAHP and THP: dimension 128, two heads, two blocks."""

from __future__ import annotations

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
