"""Embeddings rounded to one byte a number: what a search reads first, at a quarter of the memory and of its traffic.

    x_d is kept as b_d = round(x_d / scale_d), -127 <= b_d <= 127, with scale_d = max over the corpus of |x_d| / 127
    q . x  is about  sum_d (q_d scale_d) b_d

Only the corpus is rounded, not the query. The best few by this sum are scored again with the embeddings themselves, so
scores are exact and a row is lost only if rounding moves it behind all of those (see docs/index-measurements.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]


def scale_of(embeddings: Vectors) -> Vectors:
    """scale_d: (D,); 1 where a dimension is 0 throughout."""
    largest = np.maximum(embeddings.max(0, initial=0), -embeddings.min(0, initial=0))
    return np.where(largest > 0, largest / 127, 1).astype(np.float32)


def rounded(embeddings: Vectors, scale: Vectors) -> npt.NDArray[np.int8]:
    """b: (n, D)."""
    return np.clip(np.rint(embeddings / scale), -127, 127).astype(np.int8)


@dataclass(frozen=True)
class RoundedVectors:
    """The corpus' b and scale."""

    numbers: npt.NDArray[np.int8]  # (n, D)
    scale: Vectors  # (D,)

    @classmethod
    def of(cls, embeddings: Vectors) -> RoundedVectors:
        scale = scale_of(embeddings)
        return cls(rounded(embeddings, scale), scale)
