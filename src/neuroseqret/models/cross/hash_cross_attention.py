"""HashCrossAttention: cross attention with an embedding, so that sequences can be hashed and indexed.

A sequence conditioned on itself needs no query: this gives the embedding that is hashed and searched. The score, a
divergence of next-event distributions, reranks what is found. `default` conditions on a memory of relevant sets
(`memory_correction`), `paper` is the model of the paper (`process_correction`).
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
    """Cross attention with an embedding: it can be indexed, and its score reranks what the index finds.

    `preset` is `default`, which corrects the first stage's score by a memory of relevant sets, `paper`
    (`paper-health`, ...), the model of the paper, or `paper-literal`, its sums to the letter. `first_stage` is
    a trained `SelfAttention`; without one, `fit` trains it. `overrides` replace settings, see
    `cross.presets.CrossSettings`. `embed` returns what is hashed.

    For example:

        model = HashCrossAttention().fit(queries, corpus)
        index = Index.create(model, "index", corpus)
        index.search(query, k=10)
    """

    name: ClassVar[str] = "hash-cross"
    version: ClassVar[int] = 3
    preset_versions: ClassVar[dict[str, int]] = {"paper-literal": 1, "paper": 5}
    corrections: ClassVar[dict[str, type[Correction]]] = {"memory": MemoryDivergence, "process": ProcessDivergence}
    correction: EmbeddingCorrection

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self.trained_card()
        return self.correction.dimension

    @property
    def values(self) -> tuple[str, ...]:
        return self.first_stage.values

    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        self.trained_card()
        return self.correction.embeddings(sequences, role)
