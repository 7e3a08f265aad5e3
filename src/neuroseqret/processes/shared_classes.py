"""Marks as a bounded number of classes, so that vectors stay short if the data have thousands of marks.

With up to `most` known marks, each mark is its own class. With more, the most frequent marks of the corpus get half of
the classes, one each. The rarer marks are dealt out over the other half in order of frequency: two sequences with the
same rare mark still share a class, and the classes have about equal numbers of marks.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Marks = npt.NDArray[np.int32]


def shared_classes(marks: Marks, known: int, most: int) -> Marks | None:
    """Return the class of each known mark: (known,), or None if each mark is its own class.

    `marks` are the marks of all events of the corpus, which give the frequencies.
    """
    if known <= most:
        return None
    half = most // 2
    rank = np.arange(known)
    classes = np.empty(known, np.int32)
    most_frequent_first = np.argsort(-np.bincount(marks, minlength=known)[:known], kind="stable")
    classes[most_frequent_first] = np.where(rank < half, rank, half + (rank - half) % (most - half))
    return classes
