r"""Rank-RMTPP, Rank-SAHP and Rank-THP: the point processes with a ranking loss beside the likelihood.

.. math:: \text{loss} = \frac{1}{|A|} \sum_{(q, c_+, c_-) \in A}
          \big[\delta + \cos(e_q, e_{c_-}) - \cos(e_q, e_{c_+})\big]_+ \;-\; w \cdot \text{log-likelihood per event},

e the mean states, A the active pairs of a batch: half of the anchors are train queries, half corpus sequences that
share a group with another one, and each one's negatives are the others' relevant sequences. The weights that rank
validation best are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from neuroseqret.baselines.contrastive import Judged
from neuroseqret.baselines.point_process import BATCH, LONGEST, PointProcessBaseline, Task
from neuroseqret.baselines.rmtpp import RMTPP
from neuroseqret.baselines.sahp import SAHP
from neuroseqret.baselines.thp import THP
from neuroseqret.data.batching import join, pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures.ranks import mean_average_precision
from neuroseqret.training.augment import crop
from neuroseqret.training.losses import pairwise_hinge
from neuroseqret.training.sampling import PairSampler

MARGIN = 0.5
LIKELIHOOD = 0.1  # weight of the likelihood beside the ranking loss


class Ranked(PointProcessBaseline):
    """Put before a point process in the bases, this makes it the supervised one."""

    judged_by: ClassVar[str] = "AP"

    def loss(self, task: Task) -> Callable[[int], Tensor]:
        relevance = _relevance(task)
        sampler = PairSampler(relevance, task.train, size=BATCH // 2, seed=task.seed)

        def of_step(step: int) -> Tensor:
            pairs = sampler.batch(step)
            rng = np.random.default_rng([task.seed, step])
            corpus = pad(task.corpus, np.concatenate([pairs.pseudo, pairs.corpus]))
            per_event, vectors = self.forward(crop(join(pad(task.queries, pairs.queries), corpus), LONGEST, rng))
            anchors = len(pairs.positive)
            scores = vectors[:anchors] @ vectors[anchors:].T
            positive, ignore = torch.from_numpy(pairs.positive), torch.from_numpy(pairs.ignore)
            ranking = pairwise_hinge(scores, positive, MARGIN, ignore)
            return ranking - LIKELIHOOD * per_event

        return of_step

    def judge(self, task: Task) -> Callable[[], float] | None:
        """MAP of the validation queries."""
        judged = Judged.of(_relevance(task), task.validation, task.seed)
        if judged is None:
            return None
        queries, candidates, truth = task.queries[judged.queries], task.corpus[judged.corpus], judged.relevance
        return lambda: mean_average_precision(self.score(queries, candidates), truth)


def _relevance(task: Task) -> Relevance:
    return Relevance.from_groups(task.queries, task.corpus) if task.relevance is None else task.relevance


class RankRMTPP(Ranked, RMTPP):
    """RMTPP with the ranking loss."""

    name = "rank-rmtpp"


class RankSAHP(Ranked, SAHP):
    """SAHP with the ranking loss."""

    name = "rank-sahp"


class RankTHP(Ranked, THP):
    """THP with the ranking loss."""

    name = "rank-thp"
