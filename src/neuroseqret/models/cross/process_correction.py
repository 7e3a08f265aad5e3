"""Corrections by the paper's cross-attention process (see `cross_scorer`). They replace the first stage's score.

The first stage provides the hard negatives for training and the list to rerank.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.batching import pad, rows_by_length
from neuroseqret.data.sequences import EventSequences
from neuroseqret.models.base import Role, Scores
from neuroseqret.models.card import Outcome
from neuroseqret.models.cross.correction import Correction, EmbeddingCorrection
from neuroseqret.models.cross.cross_scorer import MOST_EVENTS, CrossScorer, Kind, first_events
from neuroseqret.models.cross.cross_scorer_fitting import CrossScorerFitting
from neuroseqret.models.cross.presets import CrossSettings
from neuroseqret.models.cross.ranked_lists import rank
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

_EVENTS = 16384  # positions in one padded batch
_LISTED = 1000  # most train queries to learn from
_DEPTH = 100  # candidates per list


class ProcessKernel(Correction):
    """The Fisher kernel of the query-conditioned process: the paper's CrossAttn."""

    kind: ClassVar[Kind] = "fisher"

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        super().__init__(first_stage, settings)
        first = first_stage
        self.scorer = CrossScorer(first.scale, first.classes, first.horizon, self.kind, settings.process)

    def fit(self, task: TrainingTask, checkpoint: Checkpoint | None) -> Outcome:
        """Train, and validate on the first stage's lists; hard negatives come from the order of its cosines."""
        rng = np.random.default_rng([task.seed, 6])
        learned = rng.permutation(task.answerable_train_rows)[: _LISTED if self.settings.process.hard else None]
        of_corpus = self.first_stage.compute_embeddings(task.corpus, "corpus")
        lists = [
            rank(
                self.first_stage.compute_embeddings(task.queries[rows], "query") @ of_corpus.T,
                rows,
                task.relevance,
                _DEPTH,
            )
            for rows in (learned, task.answerable_validation_rows)
        ]
        self.scorer.to(task.device)
        best = CrossScorerFitting(self.scorer, self.settings.process, task, *lists).run(checkpoint)
        self.scorer.to(self.first_stage.device)
        return Outcome.of("AP of lists", best)

    @torch.no_grad()
    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """Return scores (queries, candidates); keys and values of a query are computed once per batch."""
        scores = np.empty((len(queries), len(candidates)), np.float32)
        for k in range(len(queries)):
            query = self.scorer.unwarped(first_events(pad(queries, np.array([k]))))
            for rows in rows_by_length(np.minimum(candidates.lengths, MOST_EVENTS), _EVENTS):
                pairs = self.scorer.pairs(query, first_events(pad(candidates, rows)))
                scores[k, rows] = self.scorer.scores(pairs)[0].cpu().numpy()
        return scores

    def tensors(self) -> dict[str, Tensor]:
        return dict(self.scorer.state_dict())

    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        self.scorer.load_state_dict(tensors)
        self.scorer.eval()


class ProcessDivergence(ProcessKernel, EmbeddingCorrection):
    """The divergence of next-event distributions, the paper's Hash-CrossAttn; embeds sequences conditioned on
    themselves."""

    kind: ClassVar[Kind] = "divergence"

    @property
    def dimension(self) -> int:
        return len(self.scorer.information.moment)

    def first_scores(self, queries: EventSequences, corpus: EventSequences) -> Scores:
        """Return the cosines of its own embeddings, or the first stage's scores if the settings say so."""
        if self.settings.process.candidates == "first":
            return super().first_scores(queries, corpus)
        found: Scores = self.embeddings(queries, "query") @ self.embeddings(corpus, "corpus").T
        return found

    @torch.no_grad()
    def embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        """Return the Fisher vectors of sequences conditioned on themselves, as unit rows."""
        embedded = np.empty((len(sequences), self.dimension), np.float32)
        for rows in rows_by_length(np.minimum(sequences.lengths, MOST_EVENTS), _EVENTS):
            batch = first_events(pad(sequences, rows))
            batch = self.scorer.unwarped(batch) if role == "query" else batch
            embedded[rows] = self.scorer.self_conditioned(batch).cpu().numpy()
        return embedded
