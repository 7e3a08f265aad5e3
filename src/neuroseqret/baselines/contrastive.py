"""Training shared by `gru` and `histogram-metric`: in-batch softmax over pairs, the best weights by validation MAP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import IntArray
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.base import Role, Scores
from neuroseqret.models.card import Outcome
from neuroseqret.training import ranks
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.losses import in_batch_softmax
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask

JUDGED_CORPUS = 2048  # validation during training ranks at most this many corpus sequences


class ContrastiveSettings(BaselineSettings):
    """How a contrastive method learns."""

    temperature: float = 0.1
    batch: int = 64  # anchors of a step
    loop: LoopSettings


@dataclass(frozen=True)
class Judged:
    """What validation ranks during training: rows of queries and corpus, and the relevance between them."""

    queries: IntArray
    corpus: IntArray
    relevance: Relevance

    @classmethod
    def of(cls, task: TrainingTask) -> Judged | None:
        """The validation queries with a relevant sequence among `JUDGED_CORPUS` that are drawn by the seed."""
        drawn = np.random.default_rng(task.seed).permutation(task.relevance.corpus_size)[:JUDGED_CORPUS]
        listed = task.relevance.select_queries(task.validation_rows).select_corpus(np.sort(drawn))
        some = np.flatnonzero(listed.counts > 0)
        if not len(some):
            return None
        return cls(task.validation_rows[some], np.sort(drawn), listed.select_queries(some))


def train_contrastive(
    network: nn.Module,
    encode: Callable[[Role, IntArray], Tensor],
    embed_all: Callable[[Role, IntArray], Scores],
    task: TrainingTask,
    settings: ContrastiveSettings,
    checkpoint: Checkpoint | None,
) -> Outcome:
    """Train `network` so that the unit vectors of relevant pairs are close.

    `encode` gives the unit vectors (rows, D) of query or corpus rows with gradients, for training; `embed_all` gives
    them without, for validation. The loss is the multi-positive in-batch softmax of cosines divided by the
    temperature; half of the anchors are train queries, half are corpus sequences that share a group with another one.
    """
    sampler = PairSampler(task.relevance, task.train_rows_if_any, size=settings.batch, seed=task.seed)
    judged = Judged.of(task)

    def loss(step: int) -> Tensor:
        batch = sampler.batch(step)
        own: list[tuple[Role, IntArray]]
        own = [("query", batch.queries), ("corpus", batch.pseudo), ("corpus", batch.corpus)]
        queries, pseudo, shown = (ranks.shared(partial(encode, role), rows) for role, rows in own)
        scores = torch.cat([queries, pseudo]) @ shown.T
        positive, ignore = (torch.from_numpy(table).to(scores.device) for table in (batch.positive, batch.ignore))
        return in_batch_softmax(scores, positive, settings.temperature, ignore)

    def validate(judged: Judged) -> float:
        with torch.no_grad():
            scores = embed_all("query", judged.queries) @ embed_all("corpus", judged.corpus).T
        return mean_average_precision(scores, judged.relevance)

    result = train(
        network,
        loss,
        settings.loop.model_copy(update={"max_seconds": task.max_seconds}),
        seed=task.seed,
        phase="contrastive",
        validate=None if judged is None else partial(validate, judged),
        log=task.log,
        checkpoint=checkpoint,
    )
    return Outcome.of("AP", result.best)
