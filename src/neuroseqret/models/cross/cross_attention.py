r"""CrossAttention: relevance of a candidate in the light of the query; reranks what SelfAttention finds.

`default` starts from the trained first stage and adds the agreement of the two sequences' attention to a memory of
relevant sets (see `memory`), by a strength chosen on lists that may be zero:

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \lambda \sum_S a(S | H_q)\, a(S | H_c)

`paper` is the cross-attention point process with its query-conditioned Fisher kernel (see `literal_cross`).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Scores
from neuroseqret.models.cross.literal_cross import Kind
from neuroseqret.models.cross.literal_scoring import literal_scores
from neuroseqret.models.cross.memory import product
from neuroseqret.models.cross.memory_fitting import FittedMemory, JudgedLists, choose_strength
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.processes.conditioned_tables import Floats

STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class CrossAttention(SecondStage):
    """Looks at query and candidate together: use it to put the best hits of a `SelfAttention` in a new order.

    It has no embedding and cannot be indexed. `preset` is `default`, a correction of the first stage's score that is
    not the paper's model, or `paper`, which is; without `first_stage` (a trained `SelfAttention`) `fit` trains one.

    >>> first = SelfAttention().fit(queries, corpus)                            # doctest: +SKIP
    >>> cross = CrossAttention(first_stage=first).fit(queries, corpus)          # doctest: +SKIP
    >>> Index.create(first, "index", corpus).search(query, rerank=cross)        # doctest: +SKIP
    """

    name: ClassVar[str] = "cross"
    literal_kind: Kind = "fisher"

    def _choose(self, fitted: FittedMemory) -> None:
        chosen = choose_strength(fitted.sides, _corrected, STRENGTHS)
        self.info |= {"strength": chosen.strength, "strength_gains": chosen.gains, "validation": chosen.validation}

    def _score(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        if self.literal is not None:
            return literal_scores(self.literal, queries, candidates)
        of_queries, of_candidates = self._attended(queries, "query"), self._attended(candidates, "corpus")
        return of_queries @ of_candidates.T

    def _attended(self, sequences: EventSequences, role: str) -> Floats:
        """First-stage embedding and attention side by side; their dot product is the score."""
        assert self.memory is not None
        embedded = self.first_stage.embed(sequences, "query" if role == "query" else "corpus")
        strength = float(self.info["strength"])
        if not strength:
            return embedded
        return np.concatenate([embedded, strength**0.5 * self.memory.attend(sequences, embedded)], axis=1)

    def score_listed(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        if self.literal is not None:
            return super().score_listed(queries, corpus, listed)
        # A candidate is often on several lists: each is looked at once.
        some, place = np.unique(listed, return_inverse=True)
        of_queries, of_some = self._attended(queries, "query"), self._attended(corpus[some], "corpus")
        place = place.reshape(listed.shape)
        return np.stack([of_some[rows] @ query for rows, query in zip(place, of_queries, strict=True)])


def _corrected(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Scores of the candidates of the k-th list with the given strength."""
    agreement = product(judged.query_attention[k : k + 1], judged.attention[judged.place[k]])[0]
    corrected: Floats = judged.lists.scores[k] + np.float32(strength) * agreement
    return corrected
