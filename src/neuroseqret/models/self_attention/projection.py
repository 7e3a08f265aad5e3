r"""A learned projection of vectors to unit vectors: :math:`v' = \mathrm{norm}(f(v))`.

`linear`: one matrix. `mlp`: :math:`v \to` hidden :math:`\to \mathrm{ReLU} \to` dimension, dropout on its input. Several
members, each with its own initial weights and dropout, are trained in parallel and their unit vectors concatenated. The
score is then the mean of their cosines, which varies less than a single one.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.processes.dropout import dropout

Kind = Literal["none", "linear", "mlp"]


class Projection(nn.Module):
    """Maps (B, size) to unit rows (B, members * dimension); `none` only normalises."""

    def __init__(
        self,
        size: int,
        kind: Kind = "mlp",
        hidden: int = 256,
        dimension: int = 64,
        dropout_share: float = 0.2,
        members: int = 1,
    ) -> None:
        super().__init__()
        self.kind, self.dropout = kind, dropout_share
        self.members = 1 if kind == "none" else members
        self.dimension = size if kind == "none" else members * dimension
        if kind == "none":
            return
        inner = hidden if kind == "mlp" else dimension
        self.first = nn.Parameter(torch.empty(members, size, inner))
        self.first_bias = nn.Parameter(torch.zeros(members, 1, inner))
        nn.init.uniform_(self.first, -(size**-0.5), size**-0.5)
        if kind == "mlp":
            self.second = nn.Parameter(torch.empty(members, hidden, dimension))
            self.second_bias = nn.Parameter(torch.zeros(members, 1, dimension))
            nn.init.uniform_(self.second, -(hidden**-0.5), hidden**-0.5)

    def parts(self, vectors: Tensor) -> Tensor:
        """Return the unit vectors of each member: (members, B, dimension)."""
        if self.kind == "none":
            return functional.normalize(vectors, dim=-1)[None]
        return self.unit(self.inner(vectors))

    def inner(self, vectors: Tensor) -> Tensor:
        """Return what the first matrix gives, after ReLU if there is a second one: (members, B, inner)."""
        if self.training and self.dropout:
            spread = dropout(vectors.expand(self.members, *vectors.shape), self.dropout)  # each member has its own
            inner = torch.baddbmm(self.first_bias, spread, self.first)
        elif self.members == 1:
            inner = torch.addmm(self.first_bias[0], vectors, self.first[0])[None]
        else:  # all members have the same input: one product instead of one per member
            every = vectors @ self.first.transpose(0, 1).flatten(1)
            inner = every.unflatten(1, (self.members, -1)).transpose(0, 1) + self.first_bias
        return torch.relu(inner) if self.kind == "mlp" else inner

    def unit(self, inner: Tensor) -> Tensor:
        """Return the unit vectors that follow from `inner`: (members, B, dimension)."""
        if self.kind == "mlp":
            inner = torch.baddbmm(self.second_bias, inner, self.second)
        return functional.normalize(inner, dim=-1)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return the unit vectors of all members, concatenated and scaled to unit length: (B, members * dimension)."""
        parts = self.parts(vectors)
        return parts.transpose(0, 1).flatten(1) * self.members**-0.5
