"""Fit all members of a metric on cached vectors: those in closed form first, then the trained ones, step by step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.closed_form import fit_discriminant, fit_whitened, principal_directions
from neuroseqret.models.self_attention.group_probabilities import MOST_GROUPS
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_training import MetricTraining
from neuroseqret.models.self_attention.vectors import TrainingVectors, some_rows
from neuroseqret.training import budget
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.progress import Following
from neuroseqret.training.sampling import PairSampler

_CLOSED_FORM_ROWS = 20_000  # most vectors that a member in closed form is computed from
_DIRECTION_ROWS = 4096  # most corpus vectors that the directions of many groups are computed from
_ROWS_PER_SECOND = 1_000  # of the budget: fewer vectors if there is little time


def fit_metric(
    metric: Metric,
    vectors: TrainingVectors,
    relevance: Relevance,
    train_rows: IntArray,  # of the queries
    settings: SelfAttentionSettings,
    loop: LoopSettings,
    *,
    seed: int,
    phase: str,
    log: TrainingLog,
    checkpoint: Checkpoint | None = None,
    validate: Callable[[], float] | None = None,
    following: Following | None = Following(),
) -> float | None:
    """Fit the members of a metric; return the last value of `validate`. `loop.max_seconds` is for all members."""
    b, begun = settings.batch, budget.now()
    sampler = PairSampler(
        relevance,
        train_rows,
        size=settings.head_batch,
        pseudo_share=b.pseudo_share,
        pseudo_from=b.pseudo_from,
        seed=seed,
    )
    rows = _CLOSED_FORM_ROWS
    if loop.max_seconds is not None:
        rows = min(rows, max(100, round(_ROWS_PER_SECOND * loop.max_seconds)))
    _fit_closed_form(metric, vectors, relevance, sampler, settings, seed, rows)
    training = MetricTraining(metric, settings.loss, sampler, seed)

    def fit_directions() -> None:
        some = some_rows(np.arange(vectors.corpus.shape[1]), _DIRECTION_ROWS, np.random.default_rng([seed, 9]))
        metric.fit_directions(vectors.corpus[0][torch.from_numpy(some)].float().to(metric.device), seed)

    def validate_whole() -> float:
        assert validate is not None
        fit_directions()
        return validate()

    if not training.trained:
        metric.eval()
        fit_directions()
        return None if validate is None else validate()
    if loop.max_seconds is not None:
        left = max(loop.max_seconds - (budget.now() - begun), 0.1 * loop.max_seconds)
        loop = loop.model_copy(update={"max_seconds": left})
    best = train(
        training,
        lambda step: training.loss(vectors, step),
        loop,
        seed=seed,
        phase=phase,
        validate=None if validate is None else validate_whole,
        log=log,
        checkpoint=checkpoint,
        following=following,
    ).best
    if best is None:  # otherwise they are those of the weights that were kept
        fit_directions()
    return best


def _fit_closed_form(
    metric: Metric,
    vectors: TrainingVectors,
    relevance: Relevance,
    sampler: PairSampler,
    settings: SelfAttentionSettings,
    seed: int,
    most: int,
) -> None:
    """Fit the members in closed form, from at most `most` vectors."""
    members = [m for m in metric.members() if m.settings.kind in ("discriminant", "whitened")]
    if not members:
        return
    queries, corpus, groups = _labelled(relevance, sampler)
    if len(groups) > most:
        some = np.random.default_rng([seed, 4]).choice(len(groups), most, replace=False)
        asked = some < len(queries)
        groups = np.concatenate([groups[some[asked]], groups[some[~asked]]])
        queries, corpus = queries[some[asked]], corpus[some[~asked] - len(queries)]
    principal: dict[tuple[str, ...], torch.Tensor] = {}  # of what a member sees, computed once
    for member in members:
        of_queries, of_corpus = (part[0][:, member.columns] for part in (vectors.queries, vectors.corpus))
        known = torch.cat([of_queries[torch.from_numpy(queries)], of_corpus[torch.from_numpy(corpus)]]).float()
        if member.settings.kind == "discriminant":
            classifier = None if metric.groups is None else metric.groups.classifier(member.number)
            fit_discriminant(member.projection, classifier, known, torch.from_numpy(groups), settings.projection.ridge)
        else:
            if (sees := member.settings.sees) not in principal:
                principal[sees] = principal_directions(known)
            fit_whitened(member.projection, known, principal[sees])


def _labelled(relevance: Relevance, sampler: PairSampler) -> tuple[IntArray, IntArray, IntArray]:
    """Return query rows, corpus rows, and the groups of both, from 0; without groups, each query and its answers."""
    if relevance.labels is None or relevance.query_labels is None or sampler.groups is None:
        answers = [relevance.of(int(query)) for query in sampler.train]
        own = np.arange(len(answers))
        sizes = np.array([len(rows) for rows in answers], np.int64)
        return sampler.train, np.concatenate(answers), np.concatenate([own, np.repeat(own, sizes)])
    corpus = np.flatnonzero(np.isin(relevance.labels, sampler.groups))
    labels = np.concatenate([relevance.query_labels[sampler.train], relevance.labels[corpus]])
    return sampler.train, corpus, np.searchsorted(sampler.groups, labels)


def number_of_groups(relevance: Relevance, train_rows: IntArray, settings: SelfAttentionSettings) -> int:
    """Return how many groups the probabilities of the metric are about; 0 if there are none, or too many."""
    b = settings.batch
    groups = PairSampler(relevance, train_rows, pseudo_share=b.pseudo_share, pseudo_from=b.pseudo_from).groups
    return 0 if groups is None or not 2 <= len(groups) <= MOST_GROUPS else len(groups)
