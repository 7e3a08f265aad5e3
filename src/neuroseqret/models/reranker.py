"""`Reranker`: a method that reorders what a first stage found."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from neuroseqret.data.meaning import UnknownMarks
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.relevance_model import RelevanceModel, Scores
from neuroseqret.readers.coercion import Given


class Reranker(RelevanceModel):
    """A second stage: reorders the best candidates of its first stage."""

    @abstractmethod
    def rerank(
        self,
        queries: Given,
        corpus: Given,
        first_stage_scores: Scores | None = None,
        depth: int = 100,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """Rank the corpus by the first stage, and its `depth` best candidates by this model; return sortable numbers.

        Shapes as in `score`. The reordered candidates get positive ranks, highest first; all others get the difference
        of their first-stage score to the best one, at most 0. Pass `first_stage_scores` (queries, corpus) if you have
        them already. `unknown_marks` as in `score`.
        """

    @abstractmethod
    def score_listed(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        listed: IntArray,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        """Return the scores of the listed corpus rows of each query: (queries, depth)."""

    def builds_on(self, model: RelevanceModel) -> bool:
        """Whether `model` is the first stage of this one, so that its embeddings can be used again."""
        return False

    def score_embedded(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        """Return `score` of one query, given embeddings of a first stage that this model builds on: (candidates,).

        `embedding` is (D,), `candidates` (candidates, D). `events` returns the candidates as sequences; it is called
        only if the score needs their events.
        """
        return self.score(query, events(), unknown_marks="keep")[0]
