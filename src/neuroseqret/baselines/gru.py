r"""A recurrent encoder trained by contrast, similar to CoLES.

.. math:: s_i = \mathrm{GRU}([E_{x_i}; zg_i; zs_i], s_{i-1}), \qquad v = W s_n / \|W s_n\|,

where zg and zs are the logarithm of the gap, standardised over the corpus and within the sequence. The last state
represents the sequence; the in-batch softmax moves the vectors of relevant sequences together and all others apart.
CoLES treats parts of one sequence as relevant to each other; here relevance comes from the data.

Babaev et al., "CoLES: Contrastive learning for event sequences with self-supervision", SIGMOD 2022.
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.baselines.contrastive import ContrastiveSettings, train_contrastive
from neuroseqret.baselines.encoder import EncoderBaseline
from neuroseqret.data.batching import Batch, pad
from neuroseqret.data.sequences import IntArray
from neuroseqret.models.base import Role
from neuroseqret.models.card import Outcome
from neuroseqret.processes.time_scale import Inputs
from neuroseqret.training.loop import LoopSettings
from neuroseqret.training.task import TrainingTask

_VIEWS = 2  # the first columns of `Inputs.values`: zg and zs


class GRUSettings(ContrastiveSettings):
    """Sizes, and how it learns."""

    mark_width: int = Field(default=16, ge=1)
    hidden: int = Field(default=64, ge=1)
    dimension: int = Field(default=64, ge=1)
    dropout: float = 0.1
    loop: LoopSettings = LoopSettings(steps=1500, learning_rate=1e-2, evaluations=30, patience=6)


class GRUEncoder(nn.Module):
    """Padded inputs to unit vectors: (B, L) events -> (B, dimension)."""

    def __init__(self, marks: int, settings: GRUSettings) -> None:
        super().__init__()
        self.marks = marks
        self.embedding = nn.Embedding(marks + 1, settings.mark_width)  # the last row is for all unknown marks
        self.gru = nn.GRU(settings.mark_width + _VIEWS, settings.hidden, batch_first=True)
        self.dropout = nn.Dropout(settings.dropout)
        self.project = nn.Linear(settings.hidden, settings.dimension)

    def forward(self, inputs: Inputs) -> Tensor:
        marks = self.embedding(inputs.marks.clamp(max=self.marks))
        states, _ = self.gru(torch.cat([marks, inputs.values[..., :_VIEWS]], dim=2))  # (B, L, hidden)
        # Padding is on the right, so the state after the last event has seen none of it.
        last = (inputs.mask.sum(1) - 1).clamp(min=0)
        final = states[torch.arange(len(states), device=states.device), last]
        return functional.normalize(self.project(self.dropout(final)), dim=1)


class GRU(EncoderBaseline[GRUEncoder]):
    """Cosine of the projected last states of a GRU; `settings` replace any of `GRUSettings`."""

    name: ClassVar[str] = "gru"
    shares_training: ClassVar[bool] = True
    settings: GRUSettings

    def __init__(self, **settings: Any) -> None:
        super().__init__(GRUSettings(**settings))

    @property
    def dimension(self) -> int:
        return self.settings.dimension

    def make_network(self) -> GRUEncoder:
        return GRUEncoder(self.marks, self.settings)

    def encode(self, batch: Batch) -> Tensor:
        vectors: Tensor = self.network(self.scale.inputs(batch).to(self.device))
        return vectors

    def learn(self, task: TrainingTask) -> Outcome:
        """Train the encoder on relevant pairs."""
        self.scale_on(task.given_corpus)
        self.begin(task.seed, task.device)
        sides = {"query": task.queries, "corpus": task.corpus}

        def encode(role: Role, rows: IntArray) -> Tensor:
            return self.encode(pad(sides[role], rows))

        outcome = train_contrastive(
            self.network,
            encode,
            lambda role, rows: self.compute_embeddings(sides[role][rows], role),
            task,
            self.settings,
            task.checkpoint(self.name, self.settings.model_dump_json()),
        )
        self.network.cpu()
        return outcome
