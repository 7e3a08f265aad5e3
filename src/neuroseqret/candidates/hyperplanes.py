"""Random hyperplanes (Charikar 2002): bit r = [u_r . v > 0] with u_r drawn from a normal distribution.

Two vectors at an angle a differ in each bit with probability a / pi, for any data. Only the dimension must be known to
fit it. It is the baseline of every learned code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.codes import HashFunction, Vectors, check_embeddings


class RandomHyperplanes(HashFunction):
    """R random directions; see the module's docstring."""

    name = "hyperplanes"

    def fit(self, embeddings: Vectors, *, seed: int = 0) -> Self:
        """Draw R unit normals u_r; of the embeddings only the dimension is used."""
        dimension = check_embeddings(embeddings).shape[1]
        normals = np.random.default_rng(seed).normal(size=(dimension, self.bits))
        self.normals = (normals / np.linalg.norm(normals, axis=0)).astype(np.float32)  # (D, R)
        return self

    def margins(self, embeddings: Vectors) -> Vectors:
        return np.asarray(embeddings @ self.normals, np.float32)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"normals": self.normals}

    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        self.normals = state["normals"]
