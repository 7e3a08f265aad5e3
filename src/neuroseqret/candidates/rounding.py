"""Embeddings rounded to one byte per number: a quarter of the memory, and of the memory traffic, of a search.

    x_d is kept as b_d = round(x_d / scale_d), -127 <= b_d <= 127, with scale_d = max over the corpus of |x_d| / 127
    q . x  is about  sum_d (q_d scale_d) b_d

Only the corpus is rounded, not the query. The best few rows by this sum are scored again with the exact embeddings. So
scores are exact, and a row is missed only if rounding moves it behind all of those (see docs/index-measurements.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from neuroseqret.candidates.arrays import CHUNK, open_array, save_in_order

_NUMBERS, _SCALE = "rounded.npy", "scale.npy"
Vectors = npt.NDArray[np.float32]


def scale_of(embeddings: Vectors) -> Vectors:
    """Return scale_d: (D,); 1 where a dimension is 0 in all rows."""
    largest = np.maximum(embeddings.max(0, initial=0), -embeddings.min(0, initial=0))
    return np.where(largest > 0, largest / 127, 1).astype(np.float32)


def rounded(embeddings: Vectors, scale: Vectors) -> npt.NDArray[np.int8]:
    """Return b: (n, D)."""
    return np.clip(np.rint(embeddings / scale), -127, 127).astype(np.int8)


@dataclass(frozen=True)
class RoundedVectors:
    """b and scale of the corpus."""

    numbers: npt.NDArray[np.int8]  # (n, D)
    scale: Vectors  # (D,)

    @classmethod
    def of(cls, embeddings: Vectors) -> RoundedVectors:
        scale, numbers = scale_of(embeddings), np.empty(embeddings.shape, np.int8)
        for begin in range(0, len(embeddings), CHUNK):
            part = slice(begin, begin + CHUNK)
            numbers[part] = rounded(embeddings[part], scale)
        return cls(numbers, scale)

    @staticmethod
    def write(folder: Path, embeddings: Vectors, order: npt.NDArray[np.int32]) -> None:
        """Round and save rows in the given order, in chunks: the rounded matrix is never whole in memory."""
        scale = scale_of(embeddings)
        np.save(folder / _SCALE, scale)
        save_in_order(folder / _NUMBERS, embeddings, order, lambda part: rounded(part, scale))

    @classmethod
    def open(cls, folder: Path) -> RoundedVectors:
        """Open what `write` saved, as memory maps."""
        return cls(open_array(folder / _NUMBERS), open_array(folder / _SCALE))

    @property
    def nbytes(self) -> int:
        return self.numbers.nbytes + self.scale.nbytes
