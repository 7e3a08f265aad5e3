"""Training of a SelfAttention model, in phases.

1. Warm-up: the point process alone, by maximum likelihood. U is not trained here (see `unwarp`).
2. Joint: ranking loss and likelihood, through vector and metric, on batches of train queries and pseudo-queries.
3. Vectors: the point process is frozen; the vector of every training sequence and of its crops is computed once.
4. Selection: the weights of the members of the metric are chosen on sources that a first fit does not see.
5. Head: the members of the metric are trained on the cached vectors.

Models without a neural process start with phase 3.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.head_phase import train_head
from neuroseqret.models.self_attention.network import Raw, RelevanceNetwork
from neuroseqret.models.self_attention.process_training import ProcessTraining
from neuroseqret.models.self_attention.selection import choose_weights
from neuroseqret.models.self_attention.validation import Validation
from neuroseqret.models.self_attention.vectors import CROPS, TrainingVectors, random_crops
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.time_scale import TimeScale
from neuroseqret.training import budget, ranks
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.progress import Following, remark, working
from neuroseqret.training.task import TrainingTask

# Shares of the time limit. Crops and selection are cut down or left out if there is no time for them.
_VECTORS = 0.3  # after which no more crops are computed
_SELECTION = 0.2  # for choosing the weights of the members
_SELECTION_BEGINS = 0.5  # later, the usual weights are taken


class Fitting:
    """One training run; holds what the phases share."""

    def __init__(
        self,
        network: RelevanceNetwork,
        scale: TimeScale,
        settings: SelfAttentionSettings,
        task: TrainingTask,
        fixed: Callable[[EventSequences], Tensor | None],  # features that need no training
        values: EventValues,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.network, self.settings, self.task = network.to(task.device), settings, task
        self.queries, self.corpus, self.log, self.checkpoint = task.queries, task.corpus, task.log, checkpoint
        self.fixed, self.max_seconds = _in_shares(fixed), task.max_seconds
        self.notes: dict[str, Any] = {}
        self.validation = Validation(task, network)
        # Test queries are not even looked at.
        self.used = np.concatenate([task.train_rows, self.validation.queries])
        begun = budget.now()
        with working(f"computing features of {len(self.used) + len(task.corpus):,} sequences"):
            self._of_queries, self._of_corpus = self._fixed_of_rows(task.queries, self.used), self.fixed(task.corpus)
        self._features_took = budget.now() - begun
        self.process = ProcessTraining(network, scale, task, values, self._of_queries, self._of_corpus)

    def _fixed_of_rows(self, sequences: EventSequences, rows: IntArray) -> Tensor | None:
        """Return the fixed features of some sequences; other rows are 0."""
        some = self.fixed(sequences[rows])
        if some is None:
            return None
        whole = torch.zeros(len(sequences), some.shape[1])
        whole[rows] = some
        return whole

    def run(self) -> float | None:
        """Run all phases; return the validation AP of the weights kept, or None without validation queries."""
        max_seconds, settings = self.max_seconds, self.settings
        result = self._train_process() if settings.vector.neural else None
        if settings.head is None:
            return result
        with working("computing features of their crops"):
            vectors = self.vectors()
        weights = None
        if settings.selection is not None and not self._spent(_SELECTION_BEGINS):
            weights, self.notes["selection"] = choose_weights(
                vectors,
                self.task,
                settings,
                self.network.layout,
                max_seconds=None if max_seconds is None else _SELECTION * max_seconds,
                checkpoint=self.checkpoint,
            )
        elif settings.selection is not None:
            self.notes["selection"] = {"chosen": "the usual weights: no time left to choose"}
            remark("the time limit: members of the metric get their usual weights")
        # Every step of the last phase helps, so it gets all the time that the other phases left.
        left = None if max_seconds is None else max(0.95 * max_seconds - self._elapsed, 0.1 * max_seconds)
        return train_head(
            self.network,
            vectors,
            self.task,
            settings,
            settings.head.model_copy(update={"max_seconds": left}),
            weights=None if weights is None else weights.tolist(),
            validation=self.validation,
            checkpoint=self.checkpoint,
        )

    @property
    def _elapsed(self) -> float:
        """Seconds since `fit` was called, so that the budget counts features, vectors and selection too."""
        return budget.now() - self.task.begun

    def _spent(self, share: float, more: float = 0.0) -> bool:
        """Return whether a share of the budget is spent, or would be after `more` seconds."""
        return self.max_seconds is not None and self._elapsed + more > share * self.max_seconds

    # ---------------------------------------------------------------- neural process

    def _train_process(self) -> float | None:
        """Train the neural process; return the validation AP if no other phase follows."""
        settings, process = self.settings, self.process
        shares, sampler = _budgets(settings, self.max_seconds), process.sampler(settings.batch.size)
        self._phase(
            "warm_up", settings.warm_up, lambda step: process.likelihood_loss(sampler.batch(step), step), shares
        )
        joint = settings.joint
        if joint.steps is not None:
            joint = joint.model_copy(update={"steps": self._joint_steps(joint.steps)})
        result = self._phase(
            "joint", joint, lambda step: process.joint_loss(sampler.batch(step), step), shares, settings.head is None
        )
        process.whiten()
        return result

    def _phase(
        self,
        name: str,
        settings: LoopSettings,
        loss: Callable[[int], Tensor],
        shares: dict[str, float],
        judge: bool = False,
    ) -> float | None:
        if settings.steps == 0:
            return None
        return train(
            self.network,
            loss,
            settings.model_copy(update={"max_seconds": shares.get(name)}),
            seed=self.task.seed,
            phase=name,
            validate=self._validate_network if judge and len(self.validation.queries) else None,
            log=self.log,
            checkpoint=self.checkpoint,
            following=Following() if judge else None,
        ).best

    def _joint_steps(self, steps: int) -> int:
        """Return as many steps as `joint_epochs` over train queries and corpus allow, but not fewer than 100."""
        sequences = len(self.task.train_rows) + len(self.corpus)
        allowed = round(self.settings.joint_epochs * sequences / (2 * self.settings.batch.size))
        return min(steps, max(100, allowed))

    @torch.no_grad()
    def _validate_network(self) -> float:
        """Return the validation AP of the current network, with the running whitening."""
        of_queries = self.process.raw(self.queries, self.validation.queries, query=True)
        of_corpus = self.process.raw(self.corpus, self.validation.corpus, query=False)
        metric, validation = self.network.metric, self.validation
        return validation.quality(
            metric(self._vector(of_queries, self._of_queries, validation.queries)),
            metric(self._vector(of_corpus, self._of_corpus, validation.corpus)),
            validation.similarity(),
        )

    # ---------------------------------------------------------------- vectors

    def vectors(self) -> TrainingVectors:
        """Return the vectors of train and validation queries (other rows are 0) and corpus, and those of crops.

        There are fewer crops, or none, if the budget has no time for them.
        """
        rng, begun = np.random.default_rng([self.task.seed, 6]), budget.now()
        every = np.arange(len(self.corpus))
        queries = [self._vectors(self.queries, self.used, self._of_queries, query=True)]
        corpus = [self._vectors(self.corpus, every, self._of_corpus, query=False)]
        if any(member.crops for member in self.settings.projection.members):
            for _ in range(CROPS):
                if self._spent(_VECTORS, more=self._features_took + (budget.now() - begun) / len(queries)):
                    remark(f"the time limit: {len(queries) - 1} of {CROPS} random crops of every sequence")
                    break
                asked, shown = random_crops(self.queries[self.used], rng), random_crops(self.corpus, rng)
                whole = torch.zeros_like(queries[0])
                whole[self.used] = self._vectors(asked, np.arange(len(asked)), self.fixed(asked), query=True)
                queries.append(whole)
                corpus.append(self._vectors(shown, every, self.fixed(shown), query=False))
        return TrainingVectors(torch.stack(queries), torch.stack(corpus))

    @torch.no_grad()
    def _vectors(self, sequences: EventSequences, rows: IntArray, fixed: Tensor | None, query: bool) -> Tensor:
        raw = self.process.raw(sequences, rows, query) if self.settings.vector.neural else None
        whole = torch.zeros(len(sequences), self.network.size, dtype=torch.float16)
        whole[rows] = self._vector(raw, fixed, rows).half().cpu()
        return whole

    def _vector(self, raw: Raw | None, fixed: Tensor | None, rows: IntArray) -> Tensor:
        """Return the vectors that follow from the process and the fixed features of some rows."""
        some = None if fixed is None else fixed[rows]
        if raw is None:  # nothing to compute
            return self.network.vector(None, some)
        moved = Raw(*(part.to(self.task.device) for part in vars(raw).values()))
        return self.network.vector(moved, None if some is None else some.to(self.task.device))


def _in_shares(fixed: Callable[[EventSequences], Tensor | None]) -> Callable[[EventSequences], Tensor | None]:
    """Return the same function, of which every rank computes its share of the sequences."""
    return lambda sequences: ranks.in_shares(lambda some: fixed(sequences[some]), len(sequences))


def _budgets(settings: SelfAttentionSettings, max_seconds: float | None) -> dict[str, float]:
    """Return the most seconds that each of the first phases may take; the joint phase gets more if there is no head."""
    if max_seconds is None:
        return {}
    joint = 0.25 if settings.head is not None else 0.85
    return {"warm_up": 0.05 * max_seconds, "joint": joint * max_seconds}
