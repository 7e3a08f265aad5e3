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
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.batching import Batch, join, pad, rows_by_length
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.models.base import Scores
from neuroseqret.models.presets import SelfAttentionSettings, SimilaritySettings
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.metric_fitting import fit_metric, number_of_groups
from neuroseqret.models.self_attention.metric_training import ranking_loss
from neuroseqret.models.self_attention.network import MAX_EVENTS, Raw, RelevanceNetwork, likelihood_per_event, take
from neuroseqret.models.self_attention.selection import choose_weights
from neuroseqret.models.self_attention.vectors import CROPS, TrainingVectors, random_crops
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.similarity import difference, rows_of
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.training import budget, ranks
from neuroseqret.training.augment import crop
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import LoopSettings, train
from neuroseqret.training.losses import number_of_pairs
from neuroseqret.training.progress import working
from neuroseqret.training.sampling import PairBatch, PairSampler
from neuroseqret.training.task import TrainingTask

_JUDGED_CORPUS = 4096  # most corpus sequences that validation during training ranks
# Shares of a budget. Vectors and selection are left out or cut down if there is no time for them.
_VECTORS = 0.3  # until crops end
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
        self.network, self.scale, self.settings, self.task = network.to(task.device), scale, settings, task
        self.values = values
        self.queries, self.corpus, self.relevance = task.queries, task.corpus, task.relevance
        self.train_rows = task.train_rows
        self.validation_rows = task.answerable_validation_rows
        self.fixed, self.seed, self.log, self.checkpoint = _in_shares(fixed), task.seed, task.log, checkpoint
        self.max_seconds = task.max_seconds
        self.notes: dict[str, Any] = {}
        rng = np.random.default_rng(task.seed)
        size = min(_JUDGED_CORPUS, len(self.corpus))
        self.judged = np.sort(rng.choice(len(self.corpus), size, replace=False))
        self.used = np.concatenate([self.train_rows, self.validation_rows])  # test queries are not even looked at
        begun = budget.now()
        with working(f"computing features of {len(self.used) + len(task.corpus):,} sequences"):
            self._of_queries, self._of_corpus = self._fixed(task.queries, self.used), self.fixed(task.corpus)
        self._features_took = budget.now() - begun

    def _fixed(self, sequences: EventSequences, rows: IntArray) -> Tensor | None:
        """Return the fixed features of some sequences; other rows are 0."""
        some = self.fixed(sequences[rows])
        if some is None:
            return None
        whole = torch.zeros(len(sequences), some.shape[1])
        whole[rows] = some
        return whole

    def run(self) -> float | None:
        """Run all phases; return the validation MAP of the weights kept, or None without validation queries."""
        max_seconds, settings = self.max_seconds, self.settings
        result = None
        if settings.vector.neural:
            shares = _budgets(settings, max_seconds)
            sampler = self._sampler(settings.batch.size)
            self._phase(
                "warm_up", settings.warm_up, lambda step: self.likelihood_loss(sampler.batch(step), step), shares
            )
            joint = settings.joint
            if joint.steps is not None:
                joint = joint.model_copy(update={"steps": self._joint_steps(joint.steps)})
            result = self._phase(
                "joint", joint, lambda step: self.joint_loss(sampler.batch(step), step), shares, settings.head is None
            )
            self._whiten()
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
        # Every step of the last phase helps, so it gets all the time that the other phases left.
        left = None if max_seconds is None else max(0.95 * max_seconds - self._elapsed, 0.1 * max_seconds)
        return self.head_phase(settings.head, vectors, None if weights is None else weights.tolist(), left)

    @property
    def _elapsed(self) -> float:
        """Seconds since `fit` was called, so that the budget counts features, vectors and selection too."""
        return budget.now() - self.task.begun

    def _spent(self, share: float, more: float = 0.0) -> bool:
        """Return whether a share of the budget is spent, or would be after `more` seconds."""
        return self.max_seconds is not None and self._elapsed + more > share * self.max_seconds

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
        limited = settings.model_copy(update={"max_seconds": shares.get(name)})
        return train(
            self.network,
            loss,
            limited,
            seed=self.seed,
            phase=name,
            validate=self._validate_network if judge and len(self.validation_rows) else None,
            log=self.log,
            checkpoint=self.checkpoint,
        ).best

    def _sampler(self, size: int) -> PairSampler:
        b = self.settings.batch
        return PairSampler(
            self.relevance,
            self.train_rows,
            size=size,
            pseudo_share=b.pseudo_share,
            pseudo_from=b.pseudo_from,
            negatives=b.negatives,
            seed=self.seed,
        )

    # ---------------------------------------------------------------- losses

    def _inputs(self, pairs: PairBatch, step: int, learn_unwarping: bool = True) -> tuple[Inputs, Batch]:
        """Return queries, pseudo-queries and candidates as one batch: the inputs of their crops, and the whole batch.

        Queries are unwarped in both. U depends on the time since the start of a sequence, and Sim compares whole
        sequences, so both come before the crop.
        """
        rng = np.random.default_rng([self.seed, step, 1])
        corpus = self.values.padded(self.corpus, np.concatenate([pairs.pseudo, pairs.corpus]))
        with torch.set_grad_enabled(learn_unwarping):
            asked = self._unwarped(self.values.padded(self.queries, pairs.queries))
        batch = join(asked, corpus)
        inputs = self.scale.inputs(_detach_zero_spans(crop(batch, self.settings.batch.crop, rng)))
        return inputs.to(self.task.device), batch

    def _unwarped(self, queries: Batch) -> Batch:
        return queries if self.network.unwarp is None else unwarped(self.network.unwarp, queries)

    def _shifted(self, batch: Batch, asked: int) -> Batch:
        """Shift the first `asked` sequences by the noise eta of the unwarping: it changes Delta_t but no gaps."""
        unwarp = self.network.unwarp
        if unwarp is None:
            return batch
        shift = torch.zeros(len(batch), 1, dtype=batch.times.dtype)
        shift[:asked] = unwarp.noise(asked)
        return Batch(batch.rows, batch.times + shift * batch.mask, batch.marks, batch.lengths, batch.spans)

    def _trained_raw(self, inputs: Inputs) -> Raw:
        """Return what the process computes for a batch, with gradients; every rank computes its share."""
        rows, share = len(inputs), ranks.share(len(inputs))
        if ranks.number() == 1:
            return self.network.raw(inputs, likelihood=True)
        with ranks.own_randomness():
            raw = self.network.raw(take(inputs, torch.arange(rows)[share]), likelihood=True)
        return Raw(*(ranks.gathered(part, rows) for part in (raw.score, raw.pooled, raw.log_likelihood)))

    def likelihood_loss(self, pairs: PairBatch, step: int) -> Tensor:
        """Return the loss of a warm-up step: the negative log-likelihood per event."""
        inputs, _ = self._inputs(pairs, step, learn_unwarping=False)
        raw = self._trained_raw(inputs)
        self.network.update_whitening(raw)
        return likelihood_per_event(raw, inputs)

    def joint_loss(self, pairs: PairBatch, step: int) -> Tensor:
        """Return the loss of a joint step: ranking, weighted likelihood, and the penalty of the unwarping."""
        inputs, batch = self._inputs(pairs, step)
        raw = self._trained_raw(inputs)
        self.network.update_whitening(raw)
        fixed = None
        if self._of_queries is not None and self._of_corpus is not None:
            rows = self._of_queries[pairs.queries], self._of_corpus[pairs.pseudo], self._of_corpus[pairs.corpus]
            fixed = torch.cat(rows).to(self.task.device)
        embedded = self.network.metric(self.network.vector(raw, fixed))
        anchors = len(pairs.positive)
        scores = embedded[:anchors] @ embedded[anchors:].T
        s = self.settings.similarity
        if s.form != "none":
            moved = self._shifted(batch, len(pairs.queries))
            asked, shown = rows_of(moved, slice(0, anchors)), rows_of(moved, slice(anchors, None))
            distance = difference(asked, shown, s.form, s.terms, self.network.horizon)
            scores = s.kernel * scores - s.gamma * distance.to(scores.dtype).to(scores.device)
        loss = ranking_loss(scores, pairs.positive, pairs.ignore, self.settings.loss)
        if self.network.unwarp is not None:
            loss = loss + self._share_of_penalty(pairs) * self.network.unwarp.penalty()
        return loss + self.settings.loss.likelihood * likelihood_per_event(raw, inputs)

    def _share_of_penalty(self, pairs: PairBatch) -> float:
        """Return the weight of the unwarping's penalty beside the loss of a step.

        The paper adds the penalty to a sum over pairs. Beside the mean over all pairs it has to be divided alike.
        """
        if self.settings.loss.over == "active":
            return 1.0
        return 1 / max(number_of_pairs(torch.from_numpy(pairs.positive), torch.from_numpy(pairs.ignore)), 1)

    # ---------------------------------------------------------------- vectors

    @torch.no_grad()
    def _whiten(self) -> None:
        """Compute the whitening exactly, on the whole corpus."""
        self.network.eval()
        self.network.fit_whitening(self._raw(self.corpus, np.arange(len(self.corpus)), query=False))

    def vectors(self) -> TrainingVectors:
        """Return the vectors of train and validation queries (other rows are 0) and corpus, and those of crops.

        There are fewer crops, or none, if the budget has no time for them.
        """
        rng, begun = np.random.default_rng([self.seed, 6]), budget.now()
        every = np.arange(len(self.corpus))
        queries = [self._vectors(self.queries, self.used, self._of_queries, query=True)]
        corpus = [self._vectors(self.corpus, every, self._of_corpus, query=False)]
        if any(member.crops for member in self.settings.projection.members):
            for _ in range(CROPS):
                if self._spent(_VECTORS, more=self._features_took + (budget.now() - begun) / len(queries)):
                    break
                asked, shown = random_crops(self.queries[self.used], rng), random_crops(self.corpus, rng)
                whole = torch.zeros_like(queries[0])
                whole[self.used] = self._vectors(asked, np.arange(len(asked)), self.fixed(asked), query=True)
                queries.append(whole)
                corpus.append(self._vectors(shown, every, self.fixed(shown), query=False))
        return TrainingVectors(torch.stack(queries), torch.stack(corpus))

    @torch.no_grad()
    def _vectors(self, sequences: EventSequences, rows: IntArray, fixed: Tensor | None, query: bool) -> Tensor:
        raw = self._raw(sequences, rows, query) if self.settings.vector.neural else None
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

    def _raw(self, sequences: EventSequences, rows: IntArray, query: bool) -> Raw:
        """Return what the process computes for some sequences, without gradients; every rank computes its share."""
        raw = self._own_raw(sequences, rows[ranks.share(len(rows))], query)
        return Raw(*(ranks.gathered(part, len(rows)) for part in (raw.score, raw.pooled, raw.log_likelihood)))

    @torch.no_grad()
    def _own_raw(self, sequences: EventSequences, rows: IntArray, query: bool) -> Raw:
        width = 3 * self.settings.encoder.width
        whole = Raw(
            torch.empty(len(rows), self.network.fisher_size), torch.empty(len(rows), width), torch.empty(len(rows))
        )
        for part in rows_by_length(sequences.lengths[rows], MAX_EVENTS):
            batch = self.values.padded(sequences, rows[part])
            inputs = self.scale.inputs(self._unwarped(batch) if query else batch)
            raw = self.network.raw(inputs.to(self.task.device))
            whole.score[part], whole.pooled[part], whole.log_likelihood[part] = (
                raw.score.cpu(),
                raw.pooled.cpu(),
                raw.log_likelihood.cpu(),
            )
        return whole

    def head_phase(
        self, loop: LoopSettings, vectors: TrainingVectors, weights: list[float] | None, max_seconds: float | None
    ) -> float | None:
        """Train a new metric on the cached vectors; return its validation MAP."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed + 1)
            groups = number_of_groups(self.relevance, self.train_rows, self.settings)
            metric = Metric(self.network.layout, self.settings.projection, weights, groups).to(self.task.device)
        self.network.metric = metric
        judged = self.relevance.select_queries(self.validation_rows).select_corpus(self.judged)
        asked, shown = (
            some.float().to(self.task.device)
            for some in (vectors.queries[0][self.validation_rows], vectors.corpus[0][self.judged])
        )
        with torch.no_grad():
            similarity = self._judged_similarity()  # computed once: U does not change in this phase

        @torch.no_grad()
        def validate() -> float:
            kernel = (metric(asked, "query") @ metric(shown).T).cpu().numpy()
            return mean_average_precision(self.settings.similarity.kernel * kernel + similarity, judged)

        return fit_metric(
            metric,
            vectors,
            self.relevance,
            self.train_rows,
            self.settings,
            loop.model_copy(update={"max_seconds": max_seconds}),
            seed=self.seed,
            phase="head",
            log=self.log,
            checkpoint=self.checkpoint,
            validate=validate if len(self.validation_rows) else None,
        )

    def _joint_steps(self, steps: int) -> int:
        """Return as many steps as `joint_epochs` over train queries and corpus allow, but not fewer than 100."""
        sequences = len(self.train_rows) + len(self.corpus)
        allowed = round(self.settings.joint_epochs * sequences / (2 * self.settings.batch.size))
        return min(steps, max(100, allowed))

    def _validate_network(self) -> float:
        """Return the validation MAP of the current network, with the running whitening."""
        relevance = self.relevance.select_queries(self.validation_rows).select_corpus(self.judged)
        embedded = []
        for sequences, rows, query in ((self.queries, self.validation_rows, True), (self.corpus, self.judged, False)):
            fixed = self._of_queries if query else self._of_corpus
            with torch.no_grad():
                raw = self._raw(sequences, rows, query)
                embedded.append(self.network.metric(self._vector(raw, fixed, rows)))
        with torch.no_grad():
            similarity = self._judged_similarity()
        kernel = (embedded[0] @ embedded[1].T).cpu().numpy()
        return mean_average_precision(self.settings.similarity.kernel * kernel + similarity, relevance)

    def _judged_similarity(self) -> Scores:
        """Return gamma * Sim of the validation queries and the judged corpus; 0 if the score has no such term."""
        nothing = np.zeros((len(self.validation_rows), len(self.judged)), np.float32)
        if self.settings.similarity.form == "none" or not len(self.validation_rows):
            return nothing
        asked = self._unwarped(pad(self.queries, self.validation_rows))
        s = self.settings.similarity
        return with_similarity(nothing, asked, self.corpus[self.judged], s, self.network.horizon)


# -------------------------------------------------------------------- batches


def _in_shares(fixed: Callable[[EventSequences], Tensor | None]) -> Callable[[EventSequences], Tensor | None]:
    """Return the same function, of which every rank computes its share of the sequences."""
    return lambda sequences: ranks.in_shares(lambda some: fixed(sequences[some]), len(sequences))


def unwarped(unwarp: torch.nn.Module, queries: Batch) -> Batch:
    """Return the queries with U(t) for t; padding stays 0."""
    times, spans = unwarp(queries.times), unwarp(queries.spans)
    times = torch.where(queries.mask, times, torch.zeros_like(times))
    return replace(queries, times=times, spans=spans)


def _detach_zero_spans(batch: Batch) -> Batch:
    """Stop the gradient through sequences of zero duration, because it would divide by the duration."""
    still = batch.spans <= 0
    times = torch.where(still[:, None], batch.times.detach(), batch.times)
    return replace(batch, times=times, spans=torch.where(still, batch.spans.detach(), batch.spans))


def with_similarity(
    kernel: Scores, asked: Batch, candidates: EventSequences, settings: SimilaritySettings, horizon: float
) -> Scores:
    """Return kappa + gamma * Sim for all pairs of unwarped queries and candidates; `settings.kernel` drops kappa."""
    scores = kernel * np.float32(settings.kernel)
    if settings.form != "none":
        for rows in rows_by_length(candidates.lengths, 64 * MAX_EVENTS):
            distance = difference(asked, pad(candidates, rows), settings.form, settings.terms, horizon)
            scores[:, rows] -= settings.gamma * distance.numpy().astype(np.float32)
    return scores


def _budgets(settings: SelfAttentionSettings, max_seconds: float | None) -> dict[str, float]:
    """Return the most seconds that each of the first phases may take; the joint phase gets more if there is no head."""
    if max_seconds is None:
        return {}
    joint = 0.25 if settings.head is not None else 0.85
    return {"warm_up": 0.05 * max_seconds, "joint": joint * max_seconds}
