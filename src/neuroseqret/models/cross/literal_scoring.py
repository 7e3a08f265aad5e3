"""Scores of the paper's models for many candidates at once, in batches of like length."""

from __future__ import annotations

import numpy as np
import torch

from neuroseqret.data.batching import pad, rows_by_length
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Role, Scores
from neuroseqret.models.cross.literal_cross import MOST_EVENTS, LiteralCross, first_events
from neuroseqret.models.cross.literal_fitting import LiteralFitting
from neuroseqret.models.cross.presets import LiteralSettings
from neuroseqret.models.cross.ranked_lists import rank
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.log import TrainingLog

_EVENTS = 16384  # positions of one padded batch
_LISTED = 1000  # train queries that get hard negatives


@torch.no_grad()
def literal_scores(model: LiteralCross, queries: EventSequences, candidates: EventSequences) -> Scores:
    """(queries, candidates); the query's keys and values are computed once a batch of candidates."""
    scores = np.empty((len(queries), len(candidates)), np.float32)
    for k in range(len(queries)):
        query = model.unwarped(first_events(pad(queries, np.array([k]))))
        for rows in rows_by_length(np.minimum(candidates.lengths, MOST_EVENTS), _EVENTS):
            pairs = model.pairs(query, first_events(pad(candidates, rows)))
            scores[k, rows] = model.scores(pairs)[0].numpy()
    return scores


@torch.no_grad()
def literal_embeddings(model: LiteralCross, sequences: EventSequences, role: Role) -> Scores:
    """Self-conditioned Fisher vectors, unit rows."""
    embedded = np.empty((len(sequences), len(model.information.moment)), np.float32)
    for rows in rows_by_length(np.minimum(sequences.lengths, MOST_EVENTS), _EVENTS):
        batch = first_events(pad(sequences, rows))
        embedded[rows] = model.self_conditioned(model.unwarped(batch) if role == "query" else batch).numpy()
    return embedded


def fit_literal(
    model: LiteralCross,
    first_stage: SelfAttention,
    settings: LiteralSettings,
    queries: EventSequences,
    corpus: EventSequences,
    relevance: Relevance,
    train_rows: IntArray,
    validation_rows: IntArray,
    *,
    seed: int,
    max_seconds: float | None,
    log: TrainingLog,
    checkpoint: Checkpoint | None = None,
) -> float | None:
    """Train on the first stage's lists (its vectors' order, which is what hard negatives are taken from)."""
    rng = np.random.default_rng([seed, 6])
    learned = rng.permutation(train_rows)[:_LISTED]
    of_corpus = first_stage.embed(corpus, "corpus")
    lists = [
        rank(first_stage.embed(queries[rows], "query") @ of_corpus.T, rows, relevance, 100)
        for rows in (learned, validation_rows)
    ]
    fitting = LiteralFitting(model, settings, queries, corpus, relevance, *lists, seed=seed, log=log)
    return fitting.run(max_seconds, checkpoint)
