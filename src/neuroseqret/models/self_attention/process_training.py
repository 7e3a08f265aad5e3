"""Training of the neural process of `self`: losses of a step, and what the process computes of all sequences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.batching import Batch, join, rows_by_length
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.self_attention.metric_training import ranking_loss
from neuroseqret.models.self_attention.network import MAX_EVENTS, Raw, RelevanceNetwork, likelihood_per_event, take
from neuroseqret.models.self_attention.similarity_term import unwarped
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.similarity import difference, rows_of
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.training import ranks
from neuroseqret.training.augment import crop
from neuroseqret.training.losses import number_of_pairs
from neuroseqret.training.sampling import PairBatch, PairSampler
from neuroseqret.training.task import TrainingTask


class ProcessTraining:
    """The neural process of a network, and the sequences that it learns from."""

    def __init__(
        self,
        network: RelevanceNetwork,
        scale: TimeScale,
        task: TrainingTask,
        values: EventValues,
        of_queries: Tensor | None,  # features that need no training
        of_corpus: Tensor | None,
    ) -> None:
        self.network, self.settings, self.scale, self.task, self.values = network, network.settings, scale, task, values
        self.queries, self.corpus, self.seed = task.queries, task.corpus, task.seed
        self._of_queries, self._of_corpus = of_queries, of_corpus

    def sampler(self, size: int) -> PairSampler:
        """Return what draws the batches of the steps."""
        b = self.settings.batch
        return PairSampler(
            self.task.relevance,
            self.task.train_rows,
            size=size,
            pseudo_share=b.pseudo_share,
            pseudo_from=b.pseudo_from,
            negatives=b.negatives,
            seed=self.seed,
        )

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

    @torch.no_grad()
    def whiten(self) -> None:
        """Compute the whitening exactly, on the whole corpus."""
        self.network.eval()
        self.network.fit_whitening(self.raw(self.corpus, np.arange(len(self.corpus)), query=False))

    def raw(self, sequences: EventSequences, rows: IntArray, query: bool) -> Raw:
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


def _detach_zero_spans(batch: Batch) -> Batch:
    """Stop the gradient through sequences of zero duration, because it would divide by the duration."""
    still = batch.spans <= 0
    times = torch.where(still[:, None], batch.times.detach(), batch.times)
    return replace(batch, times=times, spans=torch.where(still, batch.spans.detach(), batch.spans))
