"""What the two cross-attention models share: a first stage, a correction of it, and `rerank`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from typing_extensions import Self

from neuroseqret.data.meaning import Meaning, UnknownMarks
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.errors import UserError
from neuroseqret.models.base import RelevanceModel, Reranker, Resumable, Scores
from neuroseqret.models.card import ModelState, Outcome, prefixed, under
from neuroseqret.models.cross.correction import Correction
from neuroseqret.models.cross.presets import CrossSettings, cross_settings_of
from neuroseqret.models.cross.ranked_lists import best_first, lift
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.readers.coercion import Given, as_sequences, one_or_many
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.task import TrainingTask

_FIRST_SHARE = 0.6  # of the budget, if the first stage is trained too


class SecondStage(Reranker, Resumable):
    """A first stage and a correction. `first_stage` is a trained SelfAttention; without one, `fit` trains it."""

    trains_on_devices: ClassVar[bool] = True
    #: The correction of each kind in the settings.
    corrections: ClassVar[dict[str, type[Correction]]]
    settings: CrossSettings

    def __init__(self, preset: str = "default", first_stage: SelfAttention | None = None, **overrides: Any) -> None:
        super().__init__(cross_settings_of(preset, overrides), preset)
        self.given = first_stage
        self.first_stage: SelfAttention
        self.correction: Correction

    # ---------------------------------------------------------------- learn

    def fit_task(self, task: TrainingTask) -> Self:
        return super().fit_task(task if self.given is None else task.in_terms_of(self.given.meaning))

    def learn(self, task: TrainingTask) -> Outcome:
        """Take the given first stage or train one, then fit the correction."""
        if len(task.answerable_train_rows) < 2:
            raise UserError(
                "a second stage needs at least two train queries with relevant corpus sequences; check the columns "
                "'split' and 'group', or the qrels"
            )
        self.first_stage = self._new_first_stage(task) if self.given is None else self._checked(self.given)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            self.correction = self._new_correction()
        weights = b"".join(tensor.cpu().numpy().tobytes() for tensor in self.first_stage.network.state_dict().values())
        checkpoint = task.checkpoint(self.settings.model_dump_json(), weights)
        return self.correction.fit(replace(task, max_seconds=task.seconds_left), checkpoint)

    def _new_first_stage(self, task: TrainingTask) -> SelfAttention:
        share = None if task.max_seconds is None else _FIRST_SHARE * task.max_seconds
        kept = None if task.checkpoint_folder is None else task.checkpoint_folder / "first_stage"
        first = SelfAttention(self.settings.first_stage_preset)
        first.fit_task(replace(task, max_seconds=share, checkpoint_folder=kept, log=TrainingLog()))
        task.log.records += first.log.records
        return first

    def _checked(self, given: SelfAttention) -> SelfAttention:
        given.trained_card()
        if not given.score_is_cosine and not self.corrections[self.settings.kind].takes_any_first_stage:
            raise UserError(
                "this second stage corrects cosines, but its first stage adds a similarity to them; use a first stage "
                "of preset 'default', or preset 'paper' for the second stage"
            )
        return given

    def _new_correction(self) -> Correction:
        return self.corrections[self.settings.kind](self.first_stage, self.settings)

    def learned_meaning(self, task: TrainingTask) -> Meaning:
        return self.first_stage.meaning

    # ---------------------------------------------------------------- use

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        self.trained_card()
        return self.correction.scores(queries, candidates)

    def rerank(
        self,
        queries: Given,
        corpus: Given,
        first_stage_scores: Scores | None = None,
        depth: int = 100,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        self.trained_card()
        asked, one = one_or_many(queries, "queries")
        many = self.meaning.apply(asked, unknown_marks)
        corpus = self.meaning.apply(as_sequences(corpus, "corpus"), unknown_marks)
        if first_stage_scores is None:
            first_stage_scores = self.correction.first_scores(many, corpus)
        first = np.asarray(first_stage_scores).reshape(len(many), len(corpus)).astype(np.float32)
        best = best_first(first, depth)
        lifted = lift(first, best, self.correction.listed_scores(many, corpus, best))
        return lifted[0] if one else lifted

    def score_listed(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        listed: IntArray,
        *,
        unknown_marks: UnknownMarks = "error",
    ) -> Scores:
        self.trained_card()
        known = self.meaning.apply(queries, unknown_marks), self.meaning.apply(corpus, unknown_marks)
        return self.correction.listed_scores(*known, listed)

    def builds_on(self, model: RelevanceModel) -> bool:
        self.trained_card()
        first = self.first_stage
        return isinstance(model, SelfAttention) and (model is first or same_state(model.to_state(), first.to_state()))

    def score_embedded(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        self.trained_card()
        if not type(self.correction).takes_any_first_stage:
            query = self.meaning.apply(query, "keep")
            scores = self.correction.embedded_scores(
                query, embedding, candidates, lambda: self.meaning.apply(events(), "keep")
            )
            if np.isfinite(scores).all():
                return scores
        return super().score_embedded(query, embedding, candidates, events)  # it names the sequence to blame

    # ---------------------------------------------------------------- keep

    def to_state(self) -> ModelState:
        card = self.trained_card()
        first = self.first_stage.to_state()
        card = card.model_copy(update={"first_stage": first.card, "constants": self.correction.constants()})
        tensors = prefixed("first_stage", first.tensors) | prefixed("correction", self.correction.tensors())
        return ModelState(card, tensors)

    def restore(self, state: ModelState) -> None:
        if state.card.first_stage is None:
            raise ValueError("the card has no first stage")
        first = ModelState(state.card.first_stage, under(state.tensors, "first_stage"))
        self.first_stage = SelfAttention.from_state(first)
        self.correction = self._new_correction()
        self.correction.restore(under(state.tensors, "correction"), state.card.constants)


def same_state(one: ModelState, other: ModelState) -> bool:
    """Whether two models compute the same: equal settings, constants and tensors."""
    alike = [(s.card.model, s.card.settings, s.card.constants, s.card.meaning, s.tensors.keys()) for s in (one, other)]
    return alike[0] == alike[1] and all(torch.equal(t.cpu(), other.tensors[k].cpu()) for k, t in one.tensors.items())
