"""First-stage embeddings that have not seen the query: what a second stage must learn from.

A trained first stage puts the relevant sequences of its own train queries on top (98 MAP) and of new ones far less
often (79), so a second stage that learns from its lists of train queries learns a world it will never meet. The
encoder stays as it is, its vectors are computed once; only the metric on top, where the memory of single queries sits,
is trained anew without each part of the train queries in turn. Lists of the left-out part then are as good and as bad
as those of new queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Role
from neuroseqret.models.self_attention.metric import Metric, affordable_steps
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Fold:
    """Embeddings of some queries, and of the whole corpus, by a metric that never saw these queries."""

    rows: IntArray  # rows of the queries
    queries: Floats  # (rows, dimension)
    corpus: Floats  # (corpus, dimension)


@torch.no_grad()
def vectors_of(model: SelfAttention, sequences: EventSequences, role: Role) -> Tensor:
    """Whitened vectors before the metric: (sequences, size)."""
    whole = torch.empty(len(sequences), model.network.size)
    for rows, inputs, markov in model.prepared(sequences, role):
        whole[rows] = model.network.vector(model.network.raw(inputs), markov).cpu()
    return whole


def out_of_fold(
    model: SelfAttention, task: TrainingTask, *, steps: int, number: int = 2, checkpoint: Checkpoint | None = None
) -> list[Fold]:
    """`number` folds that together hold every train query once."""
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
    """A projection like the model's own, of one member, learned from the given train queries alone."""
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
    metric = Metric(size, settings, sampler, seed + 2, members=1)
    if settings.projection.kind == "none":
        return metric.head.eval()  # nothing is learned on top, so there is nothing to leave out
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
