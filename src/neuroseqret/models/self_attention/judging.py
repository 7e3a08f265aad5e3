"""Judge the members of a metric by queries and sequences that a first, shorter fit has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from neuroseqret.data.relevance import Relevance
from neuroseqret.measures.ranking_measures import average_precision, ndcg
from neuroseqret.models.base import Scores
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.held_out import HeldOut
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_fitting import fit_metric, number_of_groups
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training import budget
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.progress import Following
from neuroseqret.training.task import TrainingTask

Weights = npt.NDArray[np.float64]

_HIDDEN = -9.0  # the score of what a query must not find, below every cosine


@dataclass(frozen=True)
class Judged:
    """The scores of every member for some queries, and the truth: scores (members, queries, candidates)."""

    scores: Scores
    truth: Relevance

    def quality(self, weights: Weights) -> npt.NDArray[np.float64]:
        """Return Q = 0.7 AP + 0.3 nDCG@10 of every query, with these weights of the members."""
        mixed = np.tensordot(weights.astype(np.float32), self.scores, 1)
        return 0.7 * average_precision(mixed, self.truth) + 0.3 * ndcg(mixed, self.truth)


@dataclass(frozen=True)
class Judge:
    """Fits a metric to what a division keeps, and lets each of its members rank what the division leaves out."""

    vectors: TrainingVectors
    task: TrainingTask
    settings: SelfAttentionSettings
    layout: Layout
    divisions: int  # how many there will be
    max_seconds: float | None  # for all of them
    checkpoint: Checkpoint | None

    def judged(self, held: HeldOut) -> Judged:
        """Return what the members of a metric make of the left-out sequences."""
        metric = self._fitted(held)
        asked, pseudo = torch.from_numpy(held.asked), torch.from_numpy(held.pseudo)
        queries = torch.cat([self.vectors.queries[0][asked], self.vectors.corpus[0][pseudo]])
        corpus = self.vectors.corpus[0][torch.from_numpy(held.unseen)]
        members = len(self.settings.projection.members)
        scores = np.zeros((members, len(queries), len(corpus)), np.float32)  # 0 for a member that cannot be
        with torch.no_grad():
            asked_units = metric.units(queries.float().to(metric.device), "query")
            shown_units = metric.units(corpus.float().to(metric.device))
            for number, unit in asked_units.items():
                scores[number] = (unit @ shown_units[number].T).cpu().numpy()
        scores[:, len(asked) :][:, held.hidden] = _HIDDEN
        return Judged(scores, held.truth)

    def trained_enough(self, held: HeldOut) -> bool:
        """Whether the time limit left the metric of a division enough steps to be compared with histograms."""
        assert self.settings.selection is not None
        steps = sum(record["phase"] == held.phase for record in self.task.log.records)
        return steps >= self.settings.selection.steps / 3

    def _fitted(self, held: HeldOut) -> Metric:
        """Return a metric with all members, fitted to what a division keeps."""
        settings, task, seed = self.settings, self.task, self.task.seed + 50 + held.number
        assert settings.selection is not None
        assert settings.head is not None
        seconds = None if self.max_seconds is None else self.max_seconds / self.divisions
        loop = settings.head.model_copy(update={"steps": settings.selection.steps, "max_seconds": seconds})
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            every = [1.0] * len(settings.projection.members)
            groups = number_of_groups(held.learned, held.kept, settings)
            metric = Metric(self.layout, settings.projection, every, groups).to(task.device)
        fit_metric(
            metric,
            self.vectors.part(np.arange(len(task.queries)), held.seen),
            held.learned,
            held.kept,
            settings,
            loop,
            seed=seed,
            phase=held.phase,
            log=task.log,
            checkpoint=self.checkpoint,
            following=self._following(held),
        )
        return metric

    def _following(self, held: HeldOut) -> Following | None:
        """Return what is trained after a division, for the progress; None if nobody knows how many steps that takes."""
        assert self.settings.selection is not None
        assert self.settings.head is not None
        if self.settings.head.steps is None:
            return None
        task, left = self.task, self.divisions - 1 - held.number
        seconds = math.inf if task.max_seconds is None else task.max_seconds - (budget.now() - task.begun)
        return Following(self.settings.head.steps + left * self.settings.selection.steps, max(seconds, 0.0))
