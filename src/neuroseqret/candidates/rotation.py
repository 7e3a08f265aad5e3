"""PCA-ITQ codes (Gong and Lazebnik 2011): rotate the principal components so that taking signs loses least.

V is the matrix of centred embeddings on their first min(R, D) principal directions. Find the semi-orthogonal W that
minimises || sign(V W) - V W ||_F^2 in alternating steps: B = sign(V W), then W from the Procrustes problem
max tr(W^T V^T B). With more bits than dimensions, W is wide and has orthonormal rows (a tight frame).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.candidates.codes import HashFunction, Vectors, check_embeddings


class RotationCodes(HashFunction):
    """Signs of rotated principal components; see the module's docstring."""

    name = "rotation"

    def __init__(self, bits: int = 64, iterations: int = 50) -> None:
        super().__init__(bits)
        self.iterations = iterations

    def settings(self) -> dict[str, Any]:
        return {"bits": self.bits, "iterations": self.iterations}

    def fit(self, embeddings: Vectors, *, seed: int = 0, max_rows: int = 50_000) -> Self:
        """Learn mean, principal directions and rotation from at most `max_rows` random embeddings."""
        rng = np.random.default_rng(seed)
        matrix = check_embeddings(embeddings)
        if len(matrix) > max_rows:
            matrix = matrix[rng.choice(len(matrix), max_rows, replace=False)]
        self.mean = matrix.mean(0)
        centred = matrix - self.mean
        _, directions = np.linalg.eigh(centred.T @ centred)
        principal = directions[:, ::-1][:, : self.bits]  # (D, min(R, D))
        projected = centred @ principal
        rotation = _nearest_orthogonal(rng.normal(size=(principal.shape[1], self.bits)).astype(np.float32))
        for _ in range(self.iterations):
            signs = np.where(projected @ rotation > 0, np.float32(1), np.float32(-1))
            rotation = _nearest_orthogonal(projected.T @ signs)
        self.projection = np.asarray(principal @ rotation, np.float32)  # (D, R)
        return self

    def margins(self, embeddings: Vectors) -> Vectors:
        return np.asarray((embeddings - self.mean) @ self.projection, np.float32)

    def _state(self) -> dict[str, npt.NDArray[Any]]:
        return {"mean": self.mean, "projection": self.projection}

    def _restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        self.mean, self.projection = state["mean"], state["projection"]


def _nearest_orthogonal(matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the semi-orthogonal matrix nearest to the given one (its polar factor)."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right, np.float32)
