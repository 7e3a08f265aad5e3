"""HashCrossAttention: cross attention whose sequences have an embedding of their own, so that it can be hashed.

A sequence conditioned on itself needs no query: that embedding is hashed and searched, and the score, a divergence of
next-event distributions, reranks what is found. `default` conditions on a memory of relevant sets (see
`memory_correction`), `paper` is literal (see `process_correction`).
"""

from __future__ import annotations

from typing import ClassVar

from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.cross.correction import Correction, EmbeddingCorrection
from neuroseqret.models.cross.memory_correction import MemoryDivergence
from neuroseqret.models.cross.process_correction import ProcessDivergence
from neuroseqret.models.cross.second_stage import SecondStage


class HashCrossAttention(SecondStage, Embedder):
    """Cross attention with an embedding of its own: it can be indexed, and its score then reranks what is found.

    `preset` is `default`, a correction of the first stage that is not the paper's model, or `paper`, which is; without
    `first_stage` (a trained `SelfAttention`) `fit` trains one. `embed` gives what is hashed.

    >>> model = HashCrossAttention().fit(queries, corpus)  # doctest: +SKIP
    >>> index = Index.create(model, "index", corpus)       # doctest: +SKIP
    >>> index.search(query, k=10)                          # doctest: +SKIP
    """

    name: ClassVar[str] = "hash-cross"
    corrections: ClassVar[dict[str, type[Correction]]] = {"memory": MemoryDivergence, "process": ProcessDivergence}
    correction: EmbeddingCorrection

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self.trained_card()
        return self.correction.dimension

    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        self.trained_card()
        return self.correction.embeddings(sequences, role)
