"""The paper's trainable hash: code = sign(Lambda_psi(v)), with a small network Lambda_psi.

In training tanh takes the place of the sign. A preset is a set of weights for the terms of `hash_objective`. `paper` is
literal: equal weights eta that sum to 1; its three ablations leave one term out each. `default` keeps saturation. The
other two terms depend on a code only through the sum of its bits; `default` replaces them by similarity, balance of
each bit and decorrelation of each pair of bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from typing_extensions import Self

from neuroseqret.candidates import hash_objective as objective
from neuroseqret.candidates.codes import HashFunction, Vectors, check_embeddings, check_eta
from neuroseqret.errors import UserError
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings, train

#: Weights of (evenness, saturation, redundancy) = eta_1..3, and of (similarity, balance, decorrelation).
PRESETS: dict[str, tuple[float, float, float, float, float, float]] = {
    "paper": (1 / 3, 1 / 3, 1 / 3, 0.0, 0.0, 0.0),
    "paper-without-evenness": (0.0, 0.5, 0.5, 0.0, 0.0, 0.0),
    "paper-without-saturation": (0.5, 0.0, 0.5, 0.0, 0.0, 0.0),
    "paper-without-redundancy": (0.5, 0.5, 0.0, 0.0, 0.0, 0.0),
    "default": (0.0, 0.001, 0.0, 1.0, 1.0, 1.0),
}


class HashNetwork(HashFunction):
    """Lambda_psi: a linear layer D to D, ReLU, a linear layer D to R.

    `eta` overrides the preset's first three weights.
    """

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
            raise UserError(f"no hash preset is called {preset!r}; choose one of {', '.join(PRESETS)}")
        if eta is not None:
            check_eta(eta)
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
        """Return the weighted sum of the terms on a batch; a term of weight 0 is not computed."""
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
        """Minimise the preset's objective over random batches of the embeddings."""
        matrix = torch.from_numpy(check_embeddings(embeddings))
        n, dimension = matrix.shape
        rng = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = network = new_network(dimension, self.bits)

        def loss(step: int) -> Tensor:
            v = matrix if n <= self.batch else matrix[rng.choice(n, self.batch, replace=False)]
            return self.loss(v, torch.tanh(network(v)), n)

        log = TrainingLog()
        settings = LoopSettings(steps=self.steps, learning_rate=self.learning_rate, weight_decay=0.0, warmup=0.0)
        train(network, loss, settings, seed=seed, phase="hash", log=log)
        self.losses = [record["loss"] for record in log.records]
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
        self.network = new_network(state["0.weight"].shape[1], self.bits)
        self.network.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in state.items()})


def new_network(dimension: int, bits: int) -> nn.Sequential:
    """Return Lambda_psi with random weights."""
    # Unit vectors of D dimensions have entries of about 1 / sqrt(D): the first layer scales them to about 1.
    first, last = nn.Linear(dimension, dimension), nn.Linear(dimension, bits)
    with torch.no_grad():
        first.weight.normal_(0, 1.0)
        last.weight.normal_(0, (2 / dimension) ** 0.5)
        last.bias.zero_()
    return nn.Sequential(first, nn.ReLU(), last)
