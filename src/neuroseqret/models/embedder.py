"""`Embedder`: a method that gives each sequence a vector."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from neuroseqret.data.gaps import check_gaps
from neuroseqret.data.meaning import UnknownMarks
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.relevance_model import RelevanceModel, Role, Scores, not_finite
from neuroseqret.readers.coercion import Given, as_sequences


class Embedder(RelevanceModel):
    """A method that gives each sequence a vector, so it can be indexed."""

    def embed(
        self,
        sequences: Given,
        role: Role = "corpus",
        *,
        unknown_marks: UnknownMarks = "error",
        strict: bool | None = False,
    ) -> Scores:
        """Return unit vectors (sequences, dimension) float32.

        `role` is "query" or "corpus": some methods embed queries differently. `unknown_marks` as in `score`. Times that
        look like another unit than the model's give a warning, with `strict` an error; None does not look at them.
        """
        many = self.meaning.apply(as_sequences(sequences), unknown_marks)
        if strict is not None and self.card is not None:
            check_gaps(many, self.card.typical_gaps, self.card.time_unit, strict=strict)
        vectors = self.compute_embeddings(many, role)
        if not (finite := np.isfinite(vectors).all(1)).all():
            raise not_finite("embedding", many[int(finite.argmin())].id)
        return vectors

    @property
    def values(self) -> tuple[str, ...]:
        """The columns of events that it reads beside times and marks."""
        return ()

    @abstractmethod
    def compute_embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Return unit vectors (sequences, dimension); the marks of the sequences have the method's numbers."""

    def as_query(self, embeddings: Scores) -> Scores:
        """Return embeddings of corpus sequences as those of queries, to search for more of the same."""
        return embeddings

    @property
    def score_is_cosine(self) -> bool:
        """Whether `score` is the dot product of the embeddings and nothing else."""
        return type(self).compute_scores is Embedder.compute_scores

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        scores: Scores = self.compute_embeddings(queries, "query") @ self.compute_embeddings(candidates, "corpus").T
        return scores
