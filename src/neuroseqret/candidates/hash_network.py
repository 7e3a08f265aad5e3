"""The paper's trainable hash: codes = sign(Lambda_psi(v)), Lambda_psi a small network, trained with tanh for sign.

A preset is a set of weights for the terms of `objective`. `paper` is literal (equal eta, which sum to 1; its three
ablations leave one term out). `default` keeps saturation, and has similarity, per-bit balance and decorrelation of
single pairs of bits in the place of the two terms that see a code only through the sum of its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from typing_extensions import Self

from neuroseqret.candidates import hash_objective as objective
from neuroseqret.candidates.codes import HashFunction, Vectors, check_embeddings
from neuroseqret.errors import UserError

#: Weights of (evenness, saturation, redundancy) = eta_1..3, and of (similarity, balance, decorrelation).
PRESETS: dict[str, tuple[float, float, float, float, float, float]] = {
    "paper": (1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 0.0),
    "paper-without-evenness": (0.0, 0.5, 0.5, 0.0, 0.0, 0.0),
    "paper-without-saturation": (0.5, 0.0, 0.5, 0.0, 0.0, 0.0),
    "paper-without-redundancy": (0.5, 0.5, 0.0, 0.0, 0.0, 0.0),
    "default": (0.0, 0.001, 0.0, 1.0, 1.0, 1.0),
}


class HashNetwork(HashFunction):
    """Lambda_psi: D -> D, ReLU, -> R. `eta` overrides the preset's first three weights."""

    name = "network"

    def __init__(
        self,
        bits: int = 64,
        preset: str = "default",
        eta: tuple[float, float, float] | None = None,
        steps: int = 400,
        batch: int = 512,
        learning_rate: float = 3e-3,
    ) -> None:
        super().__init__(bits)
        if preset not in PRESETS:
            raise UserError(f"no hash preset is called {preset!r}; there are {', '.join(PRESETS)}")
        if eta is not None and (len(eta) != 3 or min(eta) < 0 or abs(sum(eta) - 1) > 1e-6):
            raise UserError(f"eta is three weights of at least 0 that sum to 1, not {eta}")
        self.preset, self.eta = preset, None if eta is None else tuple(eta)
        self.steps, self.batch, self.learning_rate = steps, batch, learning_rate
        self.network: nn.Sequential | None = None

    def settings(self) -> dict[str, Any]:
        names = ("bits", "preset", "eta", "steps", "batch", "learning_rate")
        return {name: getattr(self, name) for name in names}

    @property
    def weights(self) -> tuple[float, ...]:
        preset = PRESETS[self.preset]
        return preset if self.eta is None else (*self.eta, *preset[3:])

    def loss(self, v: Tensor, h: Tensor, corpus_size: int) -> Tensor:
        """The weighted sum of the terms on a batch; a term with weight 0 is not computed."""
        terms = (
            lambda: objective.evenness(h),
            lambda: objective.saturation(h),
            lambda: objective.redundancy(h, corpus_size),
            lambda: objective.similarity(h, v),
            lambda: objective.balance(h),
            lambda: objective.decorrelation(h),
        )
        total = h.new_zeros(())
        for weight, term in zip(self.weights, terms, strict=True):
            if weight:
                total = total + weight * term()
        return total

    def fit(self, embeddings: Vectors, *, seed: int = 0) -> Self:
        matrix = torch.from_numpy(check_embeddings(embeddings))
        n, dimension = matrix.shape
        rng = np.random.default_rng(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = _network(dimension, self.bits)
        optimiser = torch.optim.Adam(self.network.parameters(), lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.steps)
        self.losses = []
        for _ in range(self.steps):
            rows = np.arange(n) if n <= self.batch else rng.choice(n, self.batch, replace=False)
            v = matrix[rows]
            loss = self.loss(v, torch.tanh(self.network(v)), n)
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            self.losses.append(float(loss.detach()))
        return self

    def margins(self, embeddings: Vectors) -> Vectors:
        if self.network is None:
            raise UserError("the hash network is not fitted yet; call fit first")
        with torch.inference_mode():
            return self.network(torch.from_numpy(np.ascontiguousarray(embeddings, np.float32))).numpy()

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        if self.network is None:
            raise UserError("the hash network is not fitted yet; call fit first")
        return {name: tensor.numpy() for name, tensor in self.network.state_dict().items()}

    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        self.network = _network(state["0.weight"].shape[1], self.bits)
        self.network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})


def _network(dimension: int, bits: int) -> nn.Sequential:
    # Unit vectors of D dimensions have entries of about 1 / sqrt(D): the first layer brings them to order 1.
    first, last = nn.Linear(dimension, dimension), nn.Linear(dimension, bits)
    with torch.no_grad():
        first.weight.normal_(0, 1.0)
        last.weight.normal_(0, (2 / dimension) ** 0.5)
        last.bias.zero_()
    return nn.Sequential(first, nn.ReLU(), last)
