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
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_fitting import fit_metric, number_of_groups
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings
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
    for rows, vectors in model.vectors(sequences, role):
        whole[rows] = vectors.cpu()
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
            asked, shown = (of.to(head.device) for of in (vectors[0][rows], vectors[1]))
            folds.append(Fold(rows, head(asked, "query").cpu().numpy(), head(shown).cpu().numpy()))
    return folds


def _metric_of(
    model: SelfAttention,
    task: TrainingTask,
    vectors: tuple[Tensor, Tensor],  # of queries and corpus
    train_rows: IntArray,
    steps: int,
    checkpoint: Checkpoint | None,
    phase: str,
) -> Metric:
    """Fit a metric like that of the model, but on the given train queries only; of trained members, the heaviest."""
    settings, seed = model.settings, task.seed + 2
    members = list(model.network.metric.members())
    trained = [member for member in members if member.settings.trained]
    heaviest = max(trained, key=lambda member: member.weight, default=None)
    weights = [0.0] * len(settings.projection.members)
    for member in members:
        if member is heaviest:
            weights[member.number] = sum(other.weight for other in trained)
        elif not member.settings.trained:
            weights[member.number] = member.weight
    if model.network.metric.groups is not None:
        weights[model.network.metric.group_member] = model.network.metric.group_weight
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        groups = number_of_groups(task.relevance, train_rows, settings)
        metric = Metric(model.network.layout, settings.projection, weights, groups).to(task.device)
    if not settings.projection.learned:
        return metric.eval()  # there is no metric to fit
    base = settings.head if settings.head is not None else LoopSettings(learning_rate=2e-3, weight_decay=1e-3)
    fit_metric(
        metric,
        TrainingVectors(vectors[0][None], vectors[1][None]),
        task.relevance,
        train_rows,
        settings,
        base.model_copy(update={"steps": steps, "max_seconds": task.max_seconds}),
        seed=seed,
        phase=phase,
        log=task.log,
        checkpoint=checkpoint,
    )
    return metric.eval()
