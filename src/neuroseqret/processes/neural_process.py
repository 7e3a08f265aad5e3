r"""The neural point process :math:`p_\theta(H)`: a causal encoder and the heads that predict the next event."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from torch import Tensor, nn

from neuroseqret.processes.encoder import EventEncoder
from neuroseqret.processes.hawkes_encoder import HawkesEncoder
from neuroseqret.processes.heads import NextEventHeads
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.time_scale import Inputs

#: What an encoder reads of an event: its gaps and place, or its time as the Transformer Hawkes Process does.
Reads = Literal["gaps", "times"]


class NeuralProcess(nn.Module):
    """Encoder and heads over classes of marks.

    `survival` adds the likelihood that nothing happens between the last event and the end of the window. An encoder of
    gaps reads as many declared `values` of every event; the heads do not predict them.
    """

    def __init__(
        self,
        classes: MarkClasses,
        width: int = 32,
        blocks: int = 2,
        heads: int = 1,
        dropout: float = 0.1,
        max_length: int = 64,
        survival: bool = True,
        reads: Reads = "gaps",
        values: int = 0,
    ) -> None:
        super().__init__()
        self.survival = survival
        self.classes = classes
        sizes = classes.number, width, blocks, heads, dropout, max_length
        self.encoder = EventEncoder(*sizes, values) if reads == "gaps" else HawkesEncoder(*sizes)
        self.heads = NextEventHeads(classes.number, width)

    def seen(self, inputs: Inputs) -> Inputs:
        """Return the inputs with marks replaced by their classes, as encoder and heads take them."""
        return replace(inputs, marks=self.classes(inputs.marks))

    def forward(self, inputs: Inputs) -> Tensor:
        """Return log p of every sequence: (B,)."""
        seen = self.seen(inputs)
        return self.heads.log_likelihood(seen, self.encoder(seen), self.survival)
