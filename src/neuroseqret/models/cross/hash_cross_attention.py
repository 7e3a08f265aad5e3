r"""HashCrossAttention: cross attention whose sequences have an embedding of their own, so that it can be hashed.

A sequence conditioned on itself needs no query: in `default` it attends to the memory of relevant sets (see `memory`)
and takes up what it finds there, in the space of the first stage's embeddings,

.. math:: e(H) = \mathrm{norm}\bigl(v(H) + \rho \textstyle\sum_S a(S | H)\, m_S\bigr).

That is what is hashed and searched. The score that reranks compares next-event distributions,

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) - \lambda\, \mathrm{KL}\bigl(p(\cdot | H_c) \,\|\, p(\cdot | H_q)\bigr),

both under the memory-conditioned process. Strengths are chosen on lists and may be zero. `paper` is literal (see
`literal_cross`): the embedding is the self-conditioned Fisher vector, the score the summed divergence and Sim.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Embedder, Role, Scores
from neuroseqret.models.cross.literal_cross import Kind
from neuroseqret.models.cross.literal_scoring import literal_embeddings, literal_scores
from neuroseqret.models.cross.memory import negative_divergence
from neuroseqret.models.cross.memory_fitting import FittedMemory, JudgedLists, choose_strength
from neuroseqret.models.cross.second_stage import SecondStage
from neuroseqret.processes.conditioned_tables import Floats

DIVERGENCE_STRENGTHS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
EMBEDDING_STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0)


class HashCrossAttention(SecondStage, Embedder):
    """Cross attention with an embedding of its own: it can be indexed, and its score then reranks what is found.

    `preset` is `default`, a correction of the first stage that is not the paper's model, or `paper`, which is; without
    `first_stage` (a trained `SelfAttention`) `fit` trains one. `embed` gives what is hashed.

    >>> model = HashCrossAttention().fit(queries, corpus)  # doctest: +SKIP
    >>> index = Index.create(model, "index", corpus)       # doctest: +SKIP
    >>> index.search(query, k=10)                          # doctest: +SKIP
    """

    name: ClassVar[str] = "hash-cross"
    literal_kind: Kind = "divergence"

    def _choose(self, fitted: FittedMemory) -> None:
        chosen = choose_strength(fitted.sides, _diverging, DIVERGENCE_STRENGTHS)
        mixing = choose_strength(fitted.sides, _embedded, EMBEDDING_STRENGTHS)
        self.info |= {"strength": chosen.strength, "strength_gains": chosen.gains, "validation": chosen.validation}
        self.info |= {"embedding_strength": mixing.strength, "embedding_strength_gains": mixing.gains}

    # ---------------------------------------------------------------- use

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        self._require_fitted()
        return self.first_stage.dimension if self.literal is None else len(self.literal.information.moment)

    def embed(
        self, sequences: EventSequence | EventSequences | Iterable[EventSequence], role: Role = "corpus"
    ) -> Scores:
        self._require_fitted()
        many = EventSequences.of(sequences)
        if self.literal is not None:
            return literal_embeddings(self.literal, many, role)
        embedded, attention = self._attended(many, role)
        assert self.memory is not None
        return mixed(embedded, attention, self.memory.centroids, float(self.info["embedding_strength"]))

    def _score(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        if self.literal is not None:
            return literal_scores(self.literal, queries, candidates)
        (v_q, a_q), (v_c, a_c) = self._attended(queries, "query"), self._attended(candidates, "corpus")
        return v_q @ v_c.T + np.float32(self.info["strength"]) * negative_divergence(a_q, a_c)

    def _attended(self, sequences: EventSequences, role: Role) -> tuple[Floats, Floats]:
        """First-stage embedding and attention."""
        assert self.memory is not None
        embedded = self.first_stage.embed(sequences, role)
        return embedded, self.memory.attend(sequences, embedded)

    def score_listed(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        if self.literal is not None:
            return super().score_listed(queries, corpus, listed)
        some, place = np.unique(listed, return_inverse=True)
        (v_q, a_q), (v_c, a_c) = self._attended(queries, "query"), self._attended(corpus[some], "corpus")
        strength = np.float32(self.info["strength"])
        return np.stack(
            [
                v_c[rows] @ v_q[k] + strength * negative_divergence(a_q[k : k + 1], a_c[rows])[0]
                for k, rows in enumerate(place.reshape(listed.shape))
            ]
        )


def mixed(embedded: Floats, attention: Floats, centroids: Floats, strength: float) -> Floats:
    """e(H): unit rows (sequences, dimension)."""
    sums = embedded + np.float32(strength) * (attention @ centroids)
    unit: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def _diverging(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Scores of the candidates of the k-th list, corrected by the divergence."""
    against = negative_divergence(judged.query_attention[k : k + 1], judged.attention[judged.place[k]])[0]
    corrected: Floats = judged.lists.scores[k] + np.float32(strength) * against
    return corrected


def _embedded(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Cosines of the mixed embeddings of the k-th list."""
    mine = mixed(judged.query_embedded[k : k + 1], judged.query_attention[k : k + 1], judged.centroids, strength)
    place = judged.place[k]
    theirs = mixed(judged.embedded[place], judged.attention[place], judged.centroids, strength)
    cosines: Floats = theirs @ mine[0]
    return cosines
