"""Training of the paper's cross-attention models: pairwise hinge loss on a few candidates per query.

With `hard`, half of the negatives are non-relevant sequences that the first stage ranks high. The others are random.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.batching import Batch, pad
from neuroseqret.data.sequences import IntArray
from neuroseqret.data.splits import sample_negatives
from neuroseqret.models.cross.cross_scorer import CrossScorer, Pairs, first_events
from neuroseqret.models.cross.presets import CrossProcessSettings
from neuroseqret.models.cross.ranked_lists import RankedLists, list_average_precision
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.loop import train
from neuroseqret.training.losses import pairwise_hinge
from neuroseqret.training.task import TrainingTask

_JUDGED = 32  # validation queries whose lists are reranked at each evaluation
_JUDGED_DEPTH = 50  # candidates of each of these lists
_WHITENED = 64  # train queries whose pairs the information is computed from at the end


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
        self.lists, self.judged = train_lists, validation_lists.head(_JUDGED, _JUDGED_DEPTH)

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

    def candidates(self, step: int) -> tuple[IntArray, IntArray, np.ndarray]:
        """Draw the train queries of a step: their rows, the rows of their candidates (Q, C), and the truth (Q, C)."""
        s, rng = self.settings, np.random.default_rng([self.seed, step, 4])
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
        truth = np.zeros((s.queries, s.positives + s.negatives), bool)
        truth[:, : s.positives] = True
        return rows, np.concatenate([positive, hard, random], axis=1), truth

    def pairs(self, rows: IntArray, candidates: IntArray, crop: int | None = None) -> Pairs:
        """Return queries and candidates by their rows, cut to their first `crop` events."""
        most = {} if crop is None else {"most": crop}
        queries: Batch = first_events(pad(self.queries, rows), **most)
        return self.model.pairs(
            self.model.unwarped(queries), first_events(pad(self.corpus, candidates.ravel()), **most)
        )

    def loss(self, step: int) -> Tensor:
        """Return the loss of a step: ranking, minus weighted log-likelihood, plus penalty of the unwarping."""
        rows, candidates, truth = self.candidates(step)
        pairs = self.pairs(rows, candidates, self.settings.crop)
        if self.model.kind == "fisher":
            with torch.no_grad():
                self.model.information.update(self.model.gradients(pairs.inputs, pairs.states.flatten(0, 1)))
        s, scores = self.settings, self.model.scores(pairs, noisy=True)
        ranking = pairwise_hinge(scores, torch.from_numpy(truth), s.margin, over=s.over)
        likelihood = self.model.log_likelihood_per_event(pairs)
        return ranking - self.settings.likelihood * likelihood + self.model.unwarp.penalty()

    @torch.no_grad()
    def validate(self) -> float:
        """Return the MAP of the judged validation lists in the order of the current scores."""
        scores = np.stack(
            [
                self.model.scores(self.pairs(row[None], candidates[None]))[0].numpy()
                for row, candidates in zip(self.judged.rows, self.judged.candidates, strict=True)
            ]
        )
        return float(list_average_precision(scores, self.judged).mean())

    @torch.no_grad()
    def fit_information(self) -> None:
        """Compute I = mean of g^2 over pairs of train queries, with the final weights."""
        total, number = torch.zeros_like(self.model.information.moment), 0
        for step in range(max(1, _WHITENED // self.settings.queries)):
            rows, candidates, _ = self.candidates(step)
            pairs = self.pairs(rows, candidates)
            for inputs, states in (
                (pairs.inputs, pairs.states.flatten(0, 1)),
                (pairs.query_inputs, pairs.query_states),
            ):
                total += self.model.gradients(inputs, states).square().sum(0)
                number += len(inputs)
        self.model.information.moment.copy_(total / max(number, 1))
