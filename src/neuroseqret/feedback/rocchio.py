r"""Rocchio's refinement: move a query's embedding towards relevant sequences and away from those that are not.

.. math:: q' = \mathrm{norm}(q + \alpha \, \mathrm{mean}(R) - \beta \, \mathrm{mean}(N)), \quad \alpha = 1, \beta = 1/2

R are the embeddings of the sequences that were judged relevant, N those of the others. Without judgements q stays as
it is. Moving away harms some queries, so callers pass N only if a user asked for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
TOWARDS, AWAY = 1.0, 0.5


def refined(query: Vectors, relevant: Vectors, not_relevant: Vectors | None = None) -> Vectors:
    """Return the moved query, of unit length: (D,), from judged embeddings (n, D).

    >>> refined(np.array([1, 0], np.float32), np.array([[0, 1]], np.float32)).round(2).tolist()
    [0.7099999785423279, 0.7099999785423279]
    """
    moved = query.astype(np.float64)
    if len(relevant):
        moved = moved + TOWARDS * relevant.mean(0)
    if not_relevant is not None and len(not_relevant):
        moved = moved - AWAY * not_relevant.mean(0)
    length = float(np.linalg.norm(moved))
    return query if length < 1e-12 else (moved / length).astype(np.float32)
