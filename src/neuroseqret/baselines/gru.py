r"""A recurrent encoder trained by contrast, in the manner of CoLES.

.. math:: s_i = \mathrm{GRU}([E_{x_i}; zg_i; zs_i], s_{i-1}), \qquad v = W s_n / \|W s_n\|,

with zg, zs the logarithm of the gap on the data's scale and on the sequence's own. The last state is the sequence;
vectors of relevant sequences are drawn together, those of others apart, by the in-batch softmax. CoLES takes parts
of one sequence for relevant; here the relevance is the data's.

Babaev et al., "CoLES: Contrastive learning for event sequences with self-supervision", SIGMOD 2022.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor, nn
from torch.nn import functional
from typing_extensions import Self

from neuroseqret.baselines.contrastive import Side, train_contrastive
from neuroseqret.baselines.folders import MEANING, fitting_together, meaning
from neuroseqret.data.batching import batches, pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import ensure_split
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.model_folder import read_model, write_model
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings

_VIEWS = 2  # the first columns of `Inputs.values`: zg and zs


class Settings(BaseModel):
    """Sizes and how it learns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mark_width: int = 16
    hidden: int = 64
    dimension: int = 64
    dropout: float = 0.1
    temperature: float = 0.1
    batch: int = 64
    loop: LoopSettings = LoopSettings(steps=1500, learning_rate=1e-2, evaluations=30, patience=6)


class GRUEncoder(nn.Module):
    """Padded inputs to unit vectors: (B, L) events -> (B, dimension)."""

    def __init__(self, marks: int, settings: Settings) -> None:
        super().__init__()
        self.marks = marks
        self.embedding = nn.Embedding(marks + 1, settings.mark_width)  # the last one: any unknown mark
        self.gru = nn.GRU(settings.mark_width + _VIEWS, settings.hidden, batch_first=True)
        self.dropout = nn.Dropout(settings.dropout)
        self.project = nn.Linear(settings.hidden, settings.dimension)

    def forward(self, inputs: Inputs) -> Tensor:
        marks = self.embedding(inputs.marks.clamp(max=self.marks))
        states, _ = self.gru(torch.cat([marks, inputs.values[..., :_VIEWS]], dim=2))  # (B, L, hidden)
        # Right padding: the state after the last event has seen no padding.
        last = (inputs.mask.sum(1) - 1).clamp(min=0)
        final = states[torch.arange(len(states)), last]
        return functional.normalize(self.project(self.dropout(final)), dim=1)


class GRU(Embedder):
    """The GRU encoder with its time scale; cosine of last states."""

    name: ClassVar[str] = "gru"

    def __init__(self, **settings: Any) -> None:
        self.settings = Settings(**settings)
        self.network: GRUEncoder | None = None
        self.scale: TimeScale | None = None
        self.info: dict[str, Any] = {}
        self.log = TrainingLog()

    def fit(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        **options: Any,
    ) -> Self:
        queries = ensure_split(queries, seed)
        relevance = Relevance.from_groups(queries, corpus) if relevance is None else relevance
        self.scale = scale = TimeScale.fit(corpus)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = network = GRUEncoder(max(corpus.num_marks, 1), self.settings)
        sides = {"query": queries, "corpus": corpus}

        def encode(side: Side, rows: IntArray) -> Tensor:
            return network(scale.inputs(pad(sides[side], rows)))

        self.log = TrainingLog()
        result = train_contrastive(
            network,
            encode,
            lambda side, rows: self.embed(sides[side][rows]),
            queries,
            relevance,
            self.settings.loop.model_copy(update={"max_seconds": max_seconds}),
            size=self.settings.batch,
            temperature=self.settings.temperature,
            seed=seed,
            log=self.log,
        )
        self.info = {**meaning(corpus), "seed": seed, "validation": {"AP": result.best}}
        return self

    @torch.no_grad()
    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        network, scale = self._fitted()
        many = EventSequences.of(sequences)
        network.eval()
        vectors = np.empty((len(many), self.settings.dimension), np.float32)
        for part in batches(many):
            vectors[part.rows] = network(scale.inputs(part)).numpy()
        return vectors

    def _fitted(self) -> tuple[GRUEncoder, TimeScale]:
        if self.network is None or self.scale is None:
            raise UserError(f"the {self.name} baseline is not fitted; call fit or load a model folder")
        return self.network, self.scale

    def save(self, folder: str | PathLike[str]) -> Path:
        network, scale = self._fitted()
        config = {
            **self.info,
            "settings": self.settings.model_dump(),
            "marks": network.marks,
            "scale": scale.model_dump(),
        }
        return write_model(folder, self.name, config, network.state_dict(), self.log.files())

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, tensors = read_model(folder, cls.name)
        with fitting_together(folder):
            made = cls(**config["settings"])
            made.scale = TimeScale.model_validate(config["scale"])
            made.network = GRUEncoder(int(config["marks"]), made.settings)
            made.network.load_state_dict(tensors)
            made.info = {name: config[name] for name in (*MEANING, "seed", "validation")}
        made.network.eval()
        return made
