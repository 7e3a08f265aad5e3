"""What `gru` and the point processes share: a network over events, and the time scale on which it reads them."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.data.batching import Batch, batches
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Embedder, Resumable, Role, Scores
from neuroseqret.models.card import ModelState
from neuroseqret.processes.time_scale import TimeScale

Network = TypeVar("Network", bound=nn.Module)


class EncoderBaseline(Embedder, Resumable, Generic[Network]):
    """Embeds a sequence by a network that reads its events; queries and corpus are embedded alike."""

    trains_on_devices: ClassVar[bool] = True
    scale: TimeScale
    marks: int  # known ones
    constants: dict[str, float]  # further numbers that are fitted on the corpus

    def __init__(self, settings: BaselineSettings) -> None:
        super().__init__(settings)
        self._network: Network | None = None

    @property
    def network(self) -> Network:
        """The network; an untrained method has none."""
        if self._network is None:
            raise UserError(f"{self.name!r} is not trained; call fit or load a model folder")
        return self._network

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return next(self.network.parameters()).device

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of an embedding."""

    @abstractmethod
    def make_network(self) -> Network:
        """A new network for `marks` known marks."""

    @abstractmethod
    def encode(self, batch: Batch) -> Tensor:
        """Unit vectors of a batch: (B, dimension)."""

    def scale_on(self, corpus: EventSequences) -> None:
        """Fit what depends on the corpus alone."""
        self.scale, self.marks, self.constants = TimeScale.fit(corpus), max(corpus.num_marks, 1), {}

    def begin(self, seed: int, device: str) -> None:
        """Begin with a new network whose weights are drawn by the seed; the caller's generator is left alone."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = self.make_network()
        self._network.to(device)

    @torch.no_grad()
    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        self.network.eval()
        embedded = np.empty((len(sequences), self.dimension), np.float32)
        for batch in batches(sequences):
            embedded[batch.rows] = self.encode(batch).cpu().numpy()
        return embedded

    def to_state(self) -> ModelState:
        weights = self.network.state_dict()
        return ModelState(self.trained_card(time_scale=self.scale, constants=self.constants), weights)

    def restore(self, state: ModelState) -> None:
        self.scale = TimeScale.model_validate(state.card.time_scale)  # a card without one does not fit
        self.marks, self.constants = state.card.marks, dict(state.card.constants)
        self._network = self.make_network()
        self._network.load_state_dict(dict(state.tensors))
        self._network.eval()
