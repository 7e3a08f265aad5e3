r"""The paper's two cross-attention scores, equation by equation.

Cross attention compares Fisher vectors of the query-conditioned process,

.. math:: s(H_q, H_c) = v_q^\top v_c + \gamma\, \mathrm{Sim}(U(H_q), H_c), \qquad
          v_c \propto I^{-1/2} \nabla_\theta \log p(H_c | U(H_q)), \quad
          v_q \propto I^{-1/2} \nabla_\theta \log p(U(H_q) | U(H_q)),

where the second is masked causally and both have unit length. Hash cross attention compares the next-event
distributions after all pairs of events,

.. math:: s(H_q, H_c) = -\sum_{q \in H_q} \sum_{c \in H_c}
          \mathrm{KL}\bigl(p_{U(H_q)}(\cdot | H_c^{\le c}) \,\|\, p_{U(H_q)}(\cdot | H_q^{\le q})\bigr)
          + \gamma\, \mathrm{Sim}(U(H_q), H_c).

With `pairs="mean"`, the divergence is divided by the number of pairs of events. The gradient is taken by the parameters
of the heads, where it has a closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from neuroseqret.data.batching import Batch
from neuroseqret.models.cross.presets import CrossProcessSettings
from neuroseqret.models.self_attention.similarity_term import unwarped
from neuroseqret.processes import fisher
from neuroseqret.processes.cross_process import CrossProcess
from neuroseqret.processes.divergence import all_pairs_divergence
from neuroseqret.processes.heads import NextEvent
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.similarity import deltas, rows_of
from neuroseqret.processes.time_scale import Inputs, TimeScale
from neuroseqret.processes.unwarp import Unwarp

MOST_EVENTS = 2048  # per sequence; later events are ignored, because attention is quadratic
Kind = Literal["fisher", "divergence"]


@dataclass(frozen=True)
class Pairs:
    """Q queries, C candidates for each, and the states of the process on them."""

    query: Batch  # unwarped
    candidates: Batch  # (Q * C) rows; those of a query are consecutive
    query_inputs: Inputs
    inputs: Inputs
    query_states: Tensor  # (Q, I + 1, D)
    states: Tensor  # (Q, C, J + 1, D)


class CrossScorer(nn.Module):
    """Unwarping, process and diagonal information, and the two scores computed from them."""

    def __init__(
        self,
        scale: TimeScale,
        classes: MarkClasses,
        horizon: float,
        kind: Kind,
        settings: CrossProcessSettings,
    ) -> None:
        super().__init__()
        s = self.settings = settings
        self.scale, self.kind, self.horizon = scale, kind, horizon
        self.unit = horizon / scale.typical_gap if s.clock == "horizon" else 1.0
        self.classes = classes
        self.process = CrossProcess(classes.number, s.width, s.positions, s.blocks, s.dropout)
        self.unwarp = Unwarp(horizon, sigma=s.sigma) if s.unwarp else None
        self.information = fisher.DiagonalInformation((2 + classes.number) * (s.width + 1))

    # ---------------------------------------------------------------- states

    @property
    def device(self) -> torch.device:
        """The device of the process; batches stay on the CPU, in double precision."""
        return self.information.moment.device

    def embed_events(self, batch: Batch) -> Tensor:
        """Return y of the events: (B, L, D)."""
        marks = self.classes(batch.marks.to(self.device))
        return self.process.embed_events(batch.times / self.scale.typical_gap, marks, self.unit)

    def _inputs(self, batch: Batch) -> Inputs:
        inputs = self.scale.inputs(batch).to(self.device)
        return replace(inputs, marks=self.classes(inputs.marks))

    def unwarped(self, queries: Batch) -> Batch:
        """Return U(H_q), without noise."""
        return queries if self.unwarp is None else unwarped(self.unwarp, queries)

    def pairs(self, queries: Batch, candidates: Batch) -> Pairs:
        """Condition the candidates of each query on it; `queries` are already unwarped."""
        asked = self.embed_events(queries)  # (Q, I, D)
        number = len(candidates) // max(len(queries), 1)
        shown = self.embed_events(candidates).unflatten(0, (len(queries), number))  # (Q, C, J, D)
        return Pairs(
            queries,
            candidates,
            self._inputs(queries),
            self._inputs(candidates),
            self.process.states(self.process.attend_self(asked)),
            self.process.states(self.process.attend(shown, asked, queries.mask.to(self.device))),
        )

    def gradients(self, inputs: Inputs, states: Tensor) -> Tensor:
        """Return the Fisher scores before whitening: (B, L + 1, D) -> (B, F)."""
        return fisher.score(self.process.heads, inputs, states, survival=False)

    # ---------------------------------------------------------------- scores

    def scores(self, pairs: Pairs, noisy: bool = False) -> Tensor:
        """Return s of every query and candidate: (Q, C).

        `noisy` adds eta to U in Sim only: a shift changes no gaps, and the inputs use U without it.
        """
        own = self.kernel(pairs) if self.kind == "fisher" else -self.divergence(pairs)
        return own - self.settings.gamma * self.distance(pairs, noisy).to(own.dtype).to(own.device)

    def kernel(self, pairs: Pairs) -> Tensor:
        """Return kappa of every query and candidate: (Q, C)."""
        of_query = self.information.whiten(self.gradients(pairs.query_inputs, pairs.query_states))
        of_candidates = self.information.whiten(self.gradients(pairs.inputs, pairs.states.flatten(0, 1)))
        return (of_query[:, None] * of_candidates.unflatten(0, pairs.states.shape[:2])).sum(-1)

    def divergence(self, pairs: Pairs) -> Tensor:
        """Return the sum or the mean of KL over all pairs of events: (Q, C)."""
        first, second = (self._after_events(x) for x in (pairs.states, pairs.query_states))
        mask = pairs.inputs.mask.unflatten(0, pairs.states.shape[:2])
        total = all_pairs_divergence(first, mask, second, pairs.query_inputs.mask)
        if self.settings.pairs == "sum":
            return total
        return total / (mask.sum(-1) * pairs.query_inputs.lengths[:, None]).clamp(min=1)

    def _after_events(self, states: Tensor) -> NextEvent:
        after: NextEvent = self.process.heads(states[..., 1:, :])
        return after

    def distance(self, pairs: Pairs, noisy: bool = False) -> Tensor:
        """Return -Sim = Delta_t + Delta_x: (Q, C)."""
        delta_t, delta_x = self.deltas(pairs, noisy)
        return delta_t + delta_x

    def deltas(self, pairs: Pairs, noisy: bool = False) -> tuple[Tensor, Tensor]:
        """Return Delta_t and Delta_x of every query and candidate: two (Q, C) float64."""
        number = pairs.states.shape[1]
        query = pairs.query
        if noisy and self.unwarp is not None:
            moved = query.times + self.unwarp.noise(len(query)).reshape(-1, 1)
            query = replace(query, times=torch.where(query.mask, moved, query.times))
        rows = []
        for q in range(len(pairs.query)):
            mine = rows_of(pairs.candidates, slice(q * number, (q + 1) * number))
            rows.append(deltas(rows_of(query, slice(q, q + 1)), mine, self.settings.form, self.horizon))
        delta_t, delta_x = (torch.cat(parts) for parts in zip(*rows, strict=True))
        return delta_t, delta_x

    def log_likelihood_per_event(self, pairs: Pairs) -> Tensor:
        """Return log p(H_c | U(H_q)) per event, averaged over the pairs."""
        total = self.process.heads.log_likelihood(pairs.inputs, pairs.states.flatten(0, 1), survival=False)
        return (total / pairs.inputs.lengths.clamp(min=1)).mean()

    def self_conditioned(self, sequences: Batch) -> Tensor:
        """Return the Fisher vectors of sequences conditioned on themselves, as unit rows: these are hashed."""
        return self.information.whiten(self.own_gradients(sequences))

    def own_gradients(self, sequences: Batch) -> Tensor:
        """Return the Fisher scores of sequences conditioned on themselves: (B, F)."""
        states = self.process.states(self.process.attend_self(self.embed_events(sequences)))
        return self.gradients(self._inputs(sequences), states)


def first_events(batch: Batch, most: int = MOST_EVENTS) -> Batch:
    """Cut sequences after their first `most` events; the window of a cut sequence ends at its last event kept."""
    if batch.times.shape[1] <= most:
        return batch
    times, marks = batch.times[:, :most], batch.marks[:, :most]
    cut = batch.lengths > most
    return Batch(batch.rows, times, marks, batch.lengths.clamp(max=most), torch.where(cut, times[:, -1], batch.spans))
