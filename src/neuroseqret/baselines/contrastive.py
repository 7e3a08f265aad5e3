"""Training shared by the contrastive baselines: in-batch softmax over pairs, the best weights by validation MAP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.splits import split_rows_if_any
from neuroseqret.measures.ranks import mean_average_precision
from neuroseqret.models.base import Scores
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop import LoopSettings, TrainingResult, train
from neuroseqret.training.losses import in_batch_softmax
from neuroseqret.training.sampling import PairSampler

Side = Literal["query", "corpus"]
JUDGED_CORPUS = 2048  # validation while training ranks at most so many corpus sequences


@dataclass(frozen=True)
class Judged:
    """What validation looks at while a method learns to rank: rows of both sides, and who is relevant to whom."""

    queries: IntArray
    corpus: IntArray
    relevance: Relevance

    @classmethod
    def of(cls, relevance: Relevance, validation: IntArray, seed: int) -> Judged | None:
        """The validation queries with something relevant among `JUDGED_CORPUS` sequences drawn by the seed."""
        drawn = np.random.default_rng(seed).permutation(relevance.corpus_size)[:JUDGED_CORPUS]
        listed = relevance.select_queries(validation).select_corpus(np.sort(drawn))
        some = np.flatnonzero(listed.counts > 0)
        return cls(validation[some], np.sort(drawn), listed.select_queries(some)) if len(some) else None


def train_contrastive(
    network: nn.Module,
    encode: Callable[[Side, IntArray], Tensor],
    embed_all: Callable[[Side, IntArray], Scores],
    queries: EventSequences,
    relevance: Relevance,
    settings: LoopSettings,
    *,
    size: int,
    temperature: float,
    seed: int,
    log: TrainingLog,
) -> TrainingResult:
    r"""Fit `network` so that unit vectors of relevant pairs are near.

    `encode` gives the unit vectors (rows, D) of query or corpus rows with gradients, in training; `embed_all` gives
    them without, for validation. The loss is the multi-positive in-batch softmax of cosines over `temperature`; half
    of the anchors are train queries, half corpus sequences that share a group with another one.
    """
    sampler = PairSampler(relevance, split_rows_if_any(queries, "train"), size=size, seed=seed)
    judged = Judged.of(relevance, split_rows_if_any(queries, "validation"), seed)

    def loss(step: int) -> Tensor:
        batch = sampler.batch(step)
        anchors = torch.cat([encode("query", batch.queries), encode("corpus", batch.pseudo)])
        scores = anchors @ encode("corpus", batch.corpus).T
        positive, ignore = torch.from_numpy(batch.positive), torch.from_numpy(batch.ignore)
        return in_batch_softmax(scores, positive, temperature, ignore)

    def validate(judged: Judged) -> float:
        with torch.no_grad():
            scores = embed_all("query", judged.queries) @ embed_all("corpus", judged.corpus).T
        return mean_average_precision(scores, judged.relevance)

    return train(
        network,
        loss,
        settings,
        seed=seed,
        phase="contrastive",
        validate=None if judged is None else partial(validate, judged),
        sequences_per_step=2 * size,
        log=log,
    )
