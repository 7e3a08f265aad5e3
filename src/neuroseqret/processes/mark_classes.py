"""Marks as a bounded number of classes, so that data of many thousand marks keep vectors of a usual size.

Up to `most` known marks, each is a class of its own, and nothing changes. Of more, the most frequent ones of the corpus
have half of the classes to themselves, and the rarer ones share the other half in turn, by their rank: two sequences
that share a rare mark still meet in its class, and no class is much fuller than another.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

Marks = npt.NDArray[np.int32]


def shared_classes(marks: Marks, known: int, most: int) -> Marks | None:
    """The class of each known mark, (known,), from the marks of all events; None where each has its own."""
    if known <= most:
        return None
    half = most // 2
    rank = np.arange(known)
    classes = np.empty(known, np.int32)
    most_frequent_first = np.argsort(-np.bincount(marks, minlength=known)[:known], kind="stable")
    classes[most_frequent_first] = np.where(rank < half, rank, half + (rank - half) % (most - half))
    return classes


class MarkClasses(nn.Module):
    """Marks (any shape) to their classes; a mark that is not known gets the class one beyond the last."""

    of_mark: Tensor | None

    def __init__(self, known: int, classes: Marks | Tensor | None = None) -> None:
        super().__init__()
        self.known = known
        self.number = known if classes is None else int(classes.max()) + 1
        self.register_buffer("of_mark", None if classes is None else torch.as_tensor(classes).long())

    def forward(self, marks: Tensor) -> Tensor:
        if self.of_mark is None:
            return marks
        classes = self.of_mark[marks.clamp(max=self.known - 1)]
        return torch.where(marks < self.known, classes, self.number)
