"""First-stage embeddings of queries that the metric has not seen, for a second stage to learn from.

A trained first stage ranks its own train queries almost perfectly (98 MAP) and new queries far worse (79). A second
stage that learns from lists of train queries would learn from lists that it never meets later. So the train queries are
split into folds, and for each fold the metric is trained again without its queries. The lists of a fold are then as
good as those of new queries. The encoder stays as it is, and its vectors are computed once: it is the metric that
overfits single queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Role
from neuroseqret.models.self_attention.metric import Projection
from neuroseqret.models.self_attention.metric_training import MetricTraining, affordable_steps
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Fold:
    """Embeddings of some queries and of the whole corpus, by a metric that was trained without these queries."""

    rows: IntArray  # rows of the queries
    queries: Floats  # (rows, dimension)
    corpus: Floats  # (corpus, dimension)


@torch.no_grad()
def vectors_of(model: SelfAttention, sequences: EventSequences, role: Role) -> Tensor:
    """Return the whitened vectors before the metric: (sequences, size)."""
    whole = torch.empty(len(sequences), model.network.size)
    for rows, inputs, markov in model.prepared(sequences, role):
        whole[rows] = model.network.vector(model.network.raw(inputs), markov).cpu()
    return whole


def out_of_fold(
    model: SelfAttention, task: TrainingTask, *, steps: int, number: int = 2, checkpoint: Checkpoint | None = None
) -> list[Fold]:
    """Return `number` folds; every train query is in exactly one of them."""
    train_rows = task.answerable_train_rows
    vectors = torch.zeros(len(task.queries), model.network.size), vectors_of(model, task.corpus, "corpus")
    vectors[0][train_rows] = vectors_of(model, task.queries[train_rows], "query")
    side = np.random.default_rng([task.seed, 2]).permutation(len(train_rows)) % number
    folds = []
    for left_out in range(number):
        phase = f"out_of_fold_{left_out}"
        head = _metric_of(model, task, vectors, train_rows[side != left_out], steps, checkpoint, phase)
        rows = train_rows[side == left_out]
        with torch.no_grad():
            folds.append(Fold(rows, head(vectors[0][rows]).numpy(), head(vectors[1]).numpy()))
    return folds


def _metric_of(
    model: SelfAttention,
    task: TrainingTask,
    vectors: tuple[Tensor, Tensor],  # of queries and corpus
    train_rows: IntArray,
    steps: int,
    checkpoint: Checkpoint | None,
    phase: str,
) -> Projection:
    """Train a projection with one member and the model's settings, on the given train queries only."""
    seed, (queries, corpus) = task.seed, vectors
    settings, size = model.settings, model.network.size
    sampler = PairSampler(
        task.relevance,
        train_rows,
        size=settings.head_batch,
        pseudo_share=settings.batch.pseudo_share,
        pseudo_from=settings.batch.pseudo_from,
        seed=seed + 2,
    )
    metric = MetricTraining(size, settings, sampler, seed + 2, members=1)
    if settings.projection.kind == "none":
        return metric.head.eval()  # there is no metric to train
    base = settings.head if settings.head is not None else LoopSettings(learning_rate=2e-3, weight_decay=1e-3)
    train(
        metric,
        lambda step: metric.loss(queries, corpus, step),
        base.model_copy(update={"steps": affordable_steps(steps, size, settings, 1), "max_seconds": task.max_seconds}),
        seed=seed,
        phase=phase,
        sequences_per_step=2 * settings.head_batch,
        log=task.log,
        checkpoint=checkpoint,
    )
    return metric.head.eval()
