r"""Rank-RMTPP, Rank-SAHP and Rank-THP: the point processes trained with a ranking loss and the likelihood.

.. math:: \text{loss} = \frac{1}{|A|} \sum_{(q, c_+, c_-) \in A}
          \big[\delta + \cos(e_q, e_{c_-}) - \cos(e_q, e_{c_+})\big]_+ \;-\; w \cdot \text{log-likelihood per event},

where e are the mean states and A the active pairs of a batch. Half of the anchors are train queries, half are corpus
sequences that share a group with another one; the negatives of an anchor are the relevant sequences of the others.
The weights that rank the validation queries best are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from neuroseqret.baselines.contrastive import Judged
from neuroseqret.baselines.point_process import BATCH, LONGEST, PointProcessBaseline
from neuroseqret.baselines.rmtpp import RMTPP
from neuroseqret.baselines.sahp import SAHP
from neuroseqret.baselines.thp import THP
from neuroseqret.data.batching import join, pad
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.training.augment import crop
from neuroseqret.training.losses import pairwise_hinge
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask

MARGIN = 0.5
LIKELIHOOD = 0.1  # weight of the likelihood relative to the ranking loss


class Ranked(PointProcessBaseline):
    """Listed before a point process among the bases, this makes it the supervised method."""

    needs_labels: ClassVar[bool] = True
    judged_by: ClassVar[str] = "AP"

    def loss(self, task: TrainingTask) -> Callable[[int], Tensor]:
        """Pairwise hinge of the cosines minus the weighted log-likelihood per event."""
        sampler = PairSampler(task.relevance, task.train_rows_if_any, size=BATCH // 2, seed=task.seed)

        def of_step(step: int) -> Tensor:
            pairs = sampler.batch(step)
            rng = np.random.default_rng([task.seed, step])
            corpus = pad(task.corpus, np.concatenate([pairs.pseudo, pairs.corpus]))
            per_event, vectors = self.forward(crop(join(pad(task.queries, pairs.queries), corpus), LONGEST, rng))
            anchors = len(pairs.positive)
            scores = vectors[:anchors] @ vectors[anchors:].T
            positive, ignore = (torch.from_numpy(table).to(scores.device) for table in (pairs.positive, pairs.ignore))
            ranking = pairwise_hinge(scores, positive, MARGIN, ignore)
            return ranking - LIKELIHOOD * per_event

        return of_step

    def judge(self, task: TrainingTask) -> Callable[[], float] | None:
        """MAP of the validation queries; None where there are none."""
        judged = Judged.of(task)
        if judged is None:
            return None
        queries, candidates, truth = task.queries[judged.queries], task.corpus[judged.corpus], judged.relevance
        return lambda: mean_average_precision(self.compute_scores(queries, candidates), truth)


class RankRMTPP(Ranked, RMTPP):
    """`rmtpp` trained with the ranking loss as well."""

    name = "rank-rmtpp"


class RankSAHP(Ranked, SAHP):
    """`sahp` trained with the ranking loss as well."""

    name = "rank-sahp"


class RankTHP(Ranked, THP):
    """`thp` trained with the ranking loss as well."""

    name = "rank-thp"
