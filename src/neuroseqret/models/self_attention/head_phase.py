"""The head phase: a new metric is trained on the cached vectors."""

from __future__ import annotations

import torch

from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_fitting import fit_metric, number_of_groups
from neuroseqret.models.self_attention.network import RelevanceNetwork
from neuroseqret.models.self_attention.validation import Validation
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings
from neuroseqret.training.task import TrainingTask


def train_head(
    network: RelevanceNetwork,
    vectors: TrainingVectors,
    task: TrainingTask,
    settings: SelfAttentionSettings,
    loop: LoopSettings,
    *,
    weights: list[float] | None,  # of the members; None: those of the settings
    validation: Validation,
    checkpoint: Checkpoint | None,
) -> float | None:
    """Give the network a new metric, trained on the vectors; return its validation AP, None without queries for it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed + 1)
        groups = number_of_groups(task.relevance, task.train_rows, settings)
        metric = Metric(network.layout, settings.projection, weights, groups).to(task.device)
    network.metric = metric
    asked, shown = (
        some.float().to(task.device)
        for some in (vectors.queries[0][validation.queries], vectors.corpus[0][validation.corpus])
    )
    similarity = validation.similarity()  # computed once: U does not change in this phase

    @torch.no_grad()
    def validate() -> float:
        return validation.quality(metric(asked, "query"), metric(shown), similarity)

    return fit_metric(
        metric,
        vectors,
        task.relevance,
        task.train_rows,
        settings,
        loop,
        seed=task.seed,
        phase="head",
        log=task.log,
        checkpoint=checkpoint,
        validate=validate if len(validation.queries) else None,
    )
