r"""The correction of CrossAttention: agreement of attentions to a memory, and cross attention between events.

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \lambda \sum_S a(S | H_q)\, a(S | H_c) + \mu\, A(H_q, H_c)

The second term is that of `memory_correction`. In the third, the events of query and candidate attend to one another
by their local states, see `processes.event_attention`. The states are the principal components of the outputs of the
bank's local kernels around the events of the corpus, each scaled to variance 1. The strength mu is chosen after lambda,
on the same lists, and may be zero too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Scores
from neuroseqret.models.card import Outcome
from neuroseqret.models.cross.memory_correction import MemoryAgreement, agreement_scores
from neuroseqret.models.cross.memory_fitting import JudgedLists, choose_strength, fit_memory
from neuroseqret.models.cross.presets import CrossSettings
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.processes.conditioned_tables import Floats
from neuroseqret.processes.event_attention import agreements
from neuroseqret.processes.local_states import LocalStates, fit_states
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

EVENT_STRENGTHS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
SHARPNESS = 8.0  # beta; 30 measured the same
_TOGETHER = 512  # candidates whose states are held at once


class EventAgreement(MemoryAgreement):
    """kappa + lambda * agreement of attentions + mu * agreement of events."""

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        super().__init__(first_stage, settings)
        self.states: LocalStates | None = None  # None: the first stage has no bank
        self.event_strength = 0.0

    def fit(self, task: TrainingTask, checkpoint: Checkpoint | None) -> Outcome:
        fitted = fit_memory(self.first_stage, task, self.settings.memory, checkpoint)
        self.memory = fitted.memory
        outcome = self.choose(fitted)
        if self.first_stage.bank is None:
            return outcome
        self.states = fit_states(self.first_stage.bank, task.corpus, task.seed)
        agreed = {
            id(judged): self.listed_agreements(task.queries[judged.lists.rows], task.corpus, judged.lists.candidates)
            for side in fitted.sides
            for judged in side
        }

        def score(judged: JudgedLists, k: int, strength: float) -> Floats:
            return agreement_scores(judged, k, self.strength) + np.float32(strength) * agreed[id(judged)][k]

        chosen = choose_strength(fitted.sides, score, EVENT_STRENGTHS)
        self.event_strength = chosen.strength
        return Outcome(chosen.validation, {**outcome.notes, "event_strength_gains": chosen.gains})

    # ---------------------------------------------------------------- scores

    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        found = super().scores(queries, candidates)
        if self.event_strength:
            for begin in range(0, len(candidates), _TOGETHER):
                block = slice(begin, min(begin + _TOGETHER, len(candidates)))
                found[:, block] += np.float32(self.event_strength) * self.all_agreements(queries, candidates[block])
        return found

    def listed_scores(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        found = super().listed_scores(queries, corpus, listed)
        if self.event_strength:
            found += np.float32(self.event_strength) * self.listed_agreements(queries, corpus, listed)
        return found

    def embedded_scores(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        if not self.event_strength:
            return super().embedded_scores(query, embedding, candidates, events)
        sequences = events()
        found = super().embedded_scores(query, embedding, candidates, lambda: sequences)
        return found + np.float32(self.event_strength) * self.all_agreements(query, sequences)[0]

    def all_agreements(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        """Return A of every pair: (queries, candidates)."""
        assert self.states is not None
        (asked, starts), (offered, offsets) = self.states.of(queries), self.states.of(candidates)
        rows = [agreements(asked[a:b], offered, offsets, SHARPNESS) for a, b in pairwise(starts)]
        return np.stack(rows)

    def listed_agreements(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        """Return A of each query and the corpus rows listed for it: (queries, depth)."""
        rows = [self.all_agreements(queries[k : k + 1], corpus[some])[0] for k, some in enumerate(listed)]
        return np.stack(rows) if rows else np.zeros(listed.shape, np.float32)

    # ---------------------------------------------------------------- keep

    def tensors(self) -> dict[str, Tensor]:
        own = {} if self.states is None else self.states.arrays()
        return super().tensors() | {f"states.{k}": torch.from_numpy(v) for k, v in own.items()}

    def constants(self) -> dict[str, float]:
        return {**super().constants(), "event_strength": self.event_strength}

    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        super().restore(tensors, constants)
        self.event_strength = constants["event_strength"]
        arrays = {k.split(".", 1)[1]: v.numpy() for k, v in tensors.items() if k.startswith("states.")}
        if arrays:
            bank = self.first_stage.bank
            if bank is None:
                raise ValueError("there are local states, but the first stage has no bank")
            if missing := {"levels", "of_marks", "shift"} - arrays.keys():
                raise ValueError(f"states.{min(missing)} is missing")
            self.states = LocalStates(bank.scale, bank.marks, bank.values, **arrays)
            self.states.check()
        elif self.event_strength:
            raise ValueError("the local states are missing")
