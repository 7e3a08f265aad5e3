"""Features of sequences that need no training: what they compare, where they are clipped, what events have in them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import FloatArray

Features = npt.NDArray[np.float32]

#: What a coordinate of the vector compares; shown in explanations.
PARTS = ("marks", "times", "marks and times", "whole sequence")
MARKS, TIMES, BOTH, WHOLE = range(4)
FAR = 5.0  # whitened features are clipped here


def clipped_shares(shares: FloatArray, features: FloatArray, subtracted: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shrink the shares of events in features that are clipped; return them, and what is left of the features.

    Without the clip a feature would be the sum of its shares less what is `subtracted`.
    """
    unclipped = shares.sum(0) - subtracted
    shares *= np.divide(features, unclipped, out=np.ones_like(features), where=np.abs(unclipped) > FAR)
    return shares, features - shares.sum(0)
