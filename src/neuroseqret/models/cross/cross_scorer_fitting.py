"""Training of the paper's cross-attention models: pairwise hinge loss on a few candidates per query.

With `hard`, half of the negatives are non-relevant sequences that the first stage ranks high. The others are random.
With `pseudo_share`, some of the anchors are corpus sequences in place of train queries, as in the first stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.data.batching import Batch, join, pad
from neuroseqret.data.sequences import IntArray
from neuroseqret.data.splits import sample_negatives
from neuroseqret.models.cross.cross_scorer import CrossScorer, Pairs, first_events
from neuroseqret.models.cross.presets import CrossProcessSettings
from neuroseqret.models.cross.ranked_lists import RankedLists, list_average_precision, mixed
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import train
from neuroseqret.training.losses import number_of_pairs, pairwise_hinge
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask

_JUDGED = 32  # validation queries whose lists are reranked at each evaluation
_JUDGED_DEPTH = 50  # candidates of each of these lists
_MIXED_RELEVANT = 10  # most relevant sequences in each of them, where candidates are drawn
_EMBEDDED = 2048  # corpus sequences that the information of an embedding is computed from at the end
_WHITENED = 64  # train queries whose pairs the information is computed from at the end


@dataclass(frozen=True)
class Drawn:
    """What a training step compares: Q train queries and P pseudo-queries, and C candidates for each of them."""

    queries: IntArray  # (Q,) rows of the queries
    pseudo: IntArray  # (P,) rows of the corpus that act as queries
    candidates: IntArray  # (Q + P, C) rows of the corpus
    truth: npt.NDArray[np.bool_]  # (Q + P, C)
    ignore: npt.NDArray[np.bool_]  # (Q + P, C) the candidate is the pseudo-query itself


class CrossScorerFitting:
    """One training run; the lists are the first stage's, for train and validation queries."""

    def __init__(
        self,
        model: CrossScorer,
        settings: CrossProcessSettings,
        task: TrainingTask,
        train_lists: RankedLists,
        validation_lists: RankedLists,
    ) -> None:
        self.model, self.settings, self.task, self.seed = model, settings, task, task.seed
        self.queries, self.corpus, self.relevance = task.queries, task.corpus, task.relevance
        self.lists, self.judged = train_lists, self._judged(validation_lists)
        self.sampler = None
        if settings.pseudo_share:
            share, anchors = settings.pseudo_share, settings.queries
            rows = task.answerable_train_rows
            self.sampler = PairSampler(self.relevance, rows, size=anchors, pseudo_share=share, seed=self.seed)

    def run(self, checkpoint: Checkpoint | None = None) -> float | None:
        """Train, then compute the information exactly; return the validation MAP of the lists, or None without any."""
        best = train(
            self.model,
            self.loss,
            self.settings.loop.model_copy(update={"max_seconds": self.task.max_seconds}),
            seed=self.seed,
            phase="cross",
            validate=self.validate if len(self.judged.rows) else None,
            log=self.task.log,
            checkpoint=checkpoint,
        ).best
        self.fit_information()
        return best

    def _judged(self, lists: RankedLists) -> RankedLists:
        """Return the lists that judge the training, made as the training makes its own.

        They hold the best of the first stage if it learns to reorder these (`hard`), and drawn candidates otherwise.
        """
        if self.settings.hard:
            return lists.head(_JUDGED, _JUDGED_DEPTH)
        rows = lists.rows[self.relevance.counts[lists.rows] < self.relevance.corpus_size][:_JUDGED]
        return mixed(rows, self.relevance, _MIXED_RELEVANT, _JUDGED_DEPTH, np.random.default_rng([self.seed, 9]))

    def drawn(self, step: int) -> Drawn:
        """Draw the anchors of a step, and positives and negatives for each."""
        s, rng = self.settings, np.random.default_rng([self.seed, step, 4])
        if self.sampler is not None:
            pairs = self.sampler.batch(step)
            positive = pairs.corpus[:, None]  # one for each anchor
            candidates = np.concatenate([positive, self.sampler.outside(pairs.sets, s.negatives, rng)], axis=1)
            ignore = np.zeros(candidates.shape, bool)
            ignore[len(pairs.queries) :] = candidates[len(pairs.queries) :] == pairs.pseudo[:, None]
            return Drawn(pairs.queries, pairs.pseudo, candidates, _first_is_true(candidates), ignore)
        place = rng.integers(0, len(self.lists.rows), s.queries)
        rows = self.lists.rows[place]
        counts, begin = self.relevance.counts[rows], self.relevance.offsets[rows]
        drawn = (rng.random((s.queries, s.positives)) * counts[:, None]).astype(np.int64)
        positive = self.relevance.rows[begin[:, None] + drawn]
        hard_number = s.negatives // 2 if s.hard else 0
        random = sample_negatives(self.relevance, rows, s.negatives - hard_number, rng, replace=True)
        # Relevant list entries are replaced by random negatives, so that all rows have the same length.
        pick = rng.integers(0, self.lists.candidates.shape[1], (s.queries, hard_number))
        hard = np.take_along_axis(self.lists.candidates[place], pick, 1)
        wrong = np.take_along_axis(self.lists.relevant[place], pick, 1)
        hard = np.where(wrong, sample_negatives(self.relevance, rows, hard_number, rng, replace=True), hard)
        candidates = np.concatenate([positive, hard, random], axis=1)
        ignore = np.zeros(candidates.shape, bool)
        return Drawn(rows, np.empty(0, np.int64), candidates, _first_is_true(candidates, s.positives), ignore)

    def pairs(self, drawn: Drawn, crop: int | None = None) -> Pairs:
        """Return what was drawn, cut to the first `crop` events; only true queries are unwarped."""
        queries = self.model.unwarped(_cut(pad(self.queries, drawn.queries), crop))
        if len(drawn.pseudo):
            queries = join(queries, _cut(pad(self.corpus, drawn.pseudo), crop))
        return self.model.pairs(queries, _cut(pad(self.corpus, drawn.candidates.ravel()), crop))

    def loss(self, step: int) -> Tensor:
        """Return the loss of a step: ranking, minus weighted log-likelihood, plus penalty of the unwarping."""
        drawn = self.drawn(step)
        pairs = self.pairs(drawn, self.settings.crop)
        if self.model.kind == "fisher":
            with torch.no_grad():
                self.model.information.update(self.model.gradients(pairs.inputs, pairs.states.flatten(0, 1)))
        s, scores = self.settings, self.model.scores(pairs, noisy=True)
        truth, ignore = (torch.from_numpy(table).to(scores.device) for table in (drawn.truth, drawn.ignore))
        ranking = pairwise_hinge(scores, truth, s.margin, ignore, s.over)
        # The paper adds the penalty to a sum over pairs; beside the mean over all pairs it is divided alike.
        share = 1.0 if s.over == "active" else 1 / max(number_of_pairs(truth, ignore), 1)
        likelihood = self.model.log_likelihood_per_event(pairs)
        penalty = 0.0 if self.model.unwarp is None else share * self.model.unwarp.penalty()
        return ranking - self.settings.likelihood * likelihood + penalty

    @torch.no_grad()
    def validate(self) -> float:
        """Return the MAP of the judged validation lists in the order of the current scores."""
        scores = np.stack(
            [
                self.model.scores(self._listed(row, candidates))[0].cpu().numpy()
                for row, candidates in zip(self.judged.rows, self.judged.candidates, strict=True)
            ]
        )
        return float(list_average_precision(scores, self.judged).mean())

    def _listed(self, row: int, candidates: IntArray) -> Pairs:
        queries = self.model.unwarped(first_events(pad(self.queries, np.array([row]))))
        return self.model.pairs(queries, first_events(pad(self.corpus, candidates)))

    @torch.no_grad()
    def fit_information(self) -> None:
        """Compute I = mean of g^2 with the final weights, over what it whitens.

        The kernel compares vectors of pairs. The embedding of the divergence is of single sequences.
        """
        if self.model.kind == "divergence" and self.settings.candidates == "own":
            rows = np.random.default_rng([self.seed, 8]).permutation(len(self.corpus))[:_EMBEDDED]
            parts = [rows[k : k + 64] for k in range(0, len(rows), 64)]
            squares = [self.model.own_gradients(_cut(pad(self.corpus, part), None)).square().sum(0) for part in parts]
            self.model.information.moment.copy_(torch.stack(squares).sum(0) / len(rows))
            return
        total, number = torch.zeros_like(self.model.information.moment), 0
        for step in range(max(1, _WHITENED // self.settings.queries)):
            pairs = self.pairs(self.drawn(step))
            for inputs, states in (
                (pairs.inputs, pairs.states.flatten(0, 1)),
                (pairs.query_inputs, pairs.query_states),
            ):
                total += self.model.gradients(inputs, states).square().sum(0)
                number += len(inputs)
        self.model.information.moment.copy_(total / max(number, 1))


def _first_is_true(candidates: IntArray, positives: int = 1) -> npt.NDArray[np.bool_]:
    truth = np.zeros(candidates.shape, bool)
    truth[:, :positives] = True
    return truth


def _cut(batch: Batch, crop: int | None) -> Batch:
    return first_events(batch) if crop is None else first_events(batch, crop)
