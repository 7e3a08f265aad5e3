r"""Corrections by a memory of relevant sets, to which query and candidate attend (see `memory`).

`MemoryAgreement`, for CrossAttention, adds the agreement of the two attentions:

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) + \lambda \sum_S a(S | H_q)\, a(S | H_c)

`MemoryDivergence`, for HashCrossAttention, compares the next-event distributions under the memory,

.. math:: s(H_q, H_c) = \kappa(H_q, H_c) - \lambda\, \mathrm{KL}\bigl(p(\cdot | H_c) \,\|\, p(\cdot | H_q)\bigr),

and has an embedding: the first-stage embedding plus the centroids that the sequence attends to,

.. math:: e(H) = \mathrm{norm}\bigl(v(H) + \rho \textstyle\sum_S a(S | H)\, m_S\bigr).

The strengths lambda and rho are chosen on lists that neither stage was fitted on. They may be zero.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.models.base import Role, Scores
from neuroseqret.models.card import Outcome
from neuroseqret.models.cross.correction import Correction, EmbeddingCorrection
from neuroseqret.models.cross.memory import RelevanceMemory, agreement, negative_divergence
from neuroseqret.models.cross.memory_fitting import FittedMemory, JudgedLists, choose_strength, fit_memory
from neuroseqret.models.cross.presets import CrossSettings
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.processes.conditioned_tables import ConditionedTables, Floats
from neuroseqret.processes.event_tables import EventTables
from neuroseqret.training.checkpoint import Checkpoint
from neuroseqret.training.task import TrainingTask

AGREEMENT_STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
DIVERGENCE_STRENGTHS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
EMBEDDING_STRENGTHS = (0.0, 0.1, 0.3, 1.0, 3.0)


class MemoryCorrection(Correction):
    """What both corrections share: the memory, and how it is fitted and saved."""

    takes_any_first_stage = False  # it corrects cosines

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        super().__init__(first_stage, settings)
        self.memory: RelevanceMemory
        self.strength = 0.0

    def fit(self, task: TrainingTask, checkpoint: Checkpoint | None) -> Outcome:
        fitted = fit_memory(self.first_stage, task, self.settings.memory, checkpoint)
        self.memory = fitted.memory
        return self.choose(fitted)

    @abstractmethod
    def choose(self, fitted: FittedMemory) -> Outcome:
        """Choose the strength of the correction, on lists that neither stage was fitted on."""

    @abstractmethod
    def compared(self, queries: Floats, candidates: Floats) -> Floats:
        """Return what the memory says of pairs, before its strength: (Q, sets) and (C, sets) to (Q, C)."""

    def embedded_scores(
        self, query: EventSequences, embedding: Scores, candidates: Scores, events: Callable[[], EventSequences]
    ) -> Scores:
        found: Scores = candidates @ embedding
        if self.strength:
            mine, theirs = self.memory.attend(query, embedding[None]), self.memory.attend(events(), candidates)
            found += np.float32(self.strength) * self.compared(mine, theirs)[0]
        return found

    def of_memory(self, query: EventSequences, candidate: EventSequences) -> float:
        """Return what the memory adds to the score of one pair."""
        (_, mine), (_, theirs) = self.attended(query, "query"), self.attended(candidate, "corpus")
        return self.strength * float(self.compared(mine, theirs)[0, 0])

    def attended(self, sequences: EventSequences, role: Role) -> tuple[Floats, Floats]:
        """Return first-stage embeddings (sequences, dimension) and attentions (sequences, sets)."""
        embedded = self.first_stage.compute_embeddings(sequences, role)
        return embedded, self.memory.attend(sequences, embedded)

    def tensors(self) -> dict[str, Tensor]:
        tables = self.memory.tables
        arrays: dict[str, np.ndarray[Any, Any]] = {
            "centroids": self.memory.centroids,
            "weights": self.memory.weights,
            **{f"gains.{k}": gain for k, gain in enumerate(tables.log_gains)},
            **{f"edges.{k}": edge for k, edge in tables.tables.edges.items()},
            "mark_rank": tables.tables.mark_rank,
            "most_cells": np.array([tables.tables.most_cells]),
        }
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def constants(self) -> dict[str, float]:
        return {"strength": self.strength}

    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        edges = {name.split(".", 1)[1]: array for name, array in arrays.items() if name.startswith("edges.")}
        tables = EventTables(self.first_stage.scale, edges, arrays["mark_rank"], int(arrays["most_cells"][0]))
        tables.check()
        centroids, weights, cells = arrays["centroids"], arrays["weights"], tables.sizes
        gains = [arrays[f"gains.{k}"] for k in range(len(cells))]
        if [gain.shape for gain in gains] != [(len(centroids), number) for number in cells]:
            raise ValueError(
                f"the tables have {sum(cells)} cells for {len(centroids)} sets; their gains have other shapes"
            )
        if weights.shape != (1 + len(cells),) or centroids.shape[1:] != (self.first_stage.dimension,):
            raise ValueError(f"weights and centroids have the shapes {weights.shape} and {centroids.shape}")
        self.memory = RelevanceMemory(ConditionedTables(tables, gains), centroids, weights)
        self.strength = constants["strength"]


class MemoryAgreement(MemoryCorrection):
    """kappa + lambda * agreement of the attentions. This is a dot product, so a corpus needs one matrix product."""

    def choose(self, fitted: FittedMemory) -> Outcome:
        chosen = choose_strength(fitted.sides, agreement_scores, AGREEMENT_STRENGTHS)
        self.strength = chosen.strength
        return Outcome(chosen.validation, {"strength_gains": chosen.gains})

    def concatenated(self, sequences: EventSequences, role: Role) -> Floats:
        """Return first-stage embedding and weighted attention, concatenated; their dot product is the score."""
        if not self.strength:
            return self.first_stage.compute_embeddings(sequences, role)
        embedded, attention = self.attended(sequences, role)
        return np.concatenate([embedded, self.strength**0.5 * attention], axis=1)

    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        return self.concatenated(queries, "query") @ self.concatenated(candidates, "corpus").T

    def listed_scores(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        some, place = np.unique(listed, return_inverse=True)  # a candidate is often on several lists
        of_queries, of_some = self.concatenated(queries, "query"), self.concatenated(corpus[some], "corpus")
        place = place.reshape(listed.shape)
        return np.stack([of_some[rows] @ query for rows, query in zip(place, of_queries, strict=True)])

    def compared(self, queries: Floats, candidates: Floats) -> Floats:
        return agreement(queries, candidates)


class MemoryDivergence(MemoryCorrection, EmbeddingCorrection):
    """kappa - lambda * divergence of next-event distributions; the embedding adds centroids of the memory."""

    def __init__(self, first_stage: SelfAttention, settings: CrossSettings) -> None:
        super().__init__(first_stage, settings)
        self.embedding_strength = 0.0

    def choose(self, fitted: FittedMemory) -> Outcome:
        chosen = choose_strength(fitted.sides, divergence_scores, DIVERGENCE_STRENGTHS)
        mixing = choose_strength(fitted.sides, embedding_scores, EMBEDDING_STRENGTHS)
        self.strength, self.embedding_strength = chosen.strength, mixing.strength
        return Outcome(chosen.validation, {"strength_gains": chosen.gains, "embedding_strength_gains": mixing.gains})

    @property
    def dimension(self) -> int:
        return self.first_stage.dimension

    def embeddings(self, sequences: EventSequences, role: Role) -> Scores:
        return mix_memory(*self.attended(sequences, role), self.memory.centroids, self.embedding_strength)

    def scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        (v_q, a_q), (v_c, a_c) = self.attended(queries, "query"), self.attended(candidates, "corpus")
        return v_q @ v_c.T + np.float32(self.strength) * negative_divergence(a_q, a_c)

    def listed_scores(self, queries: EventSequences, corpus: EventSequences, listed: IntArray) -> Scores:
        some, place = np.unique(listed, return_inverse=True)
        (v_q, a_q), (v_c, a_c) = self.attended(queries, "query"), self.attended(corpus[some], "corpus")
        strength = np.float32(self.strength)
        return np.stack(
            [
                v_c[rows] @ v_q[k] + strength * negative_divergence(a_q[k : k + 1], a_c[rows])[0]
                for k, rows in enumerate(place.reshape(listed.shape))
            ]
        )

    def compared(self, queries: Floats, candidates: Floats) -> Floats:
        return negative_divergence(queries, candidates)

    def constants(self) -> dict[str, float]:
        return {**super().constants(), "embedding_strength": self.embedding_strength}

    def restore(self, tensors: Mapping[str, Tensor], constants: Mapping[str, float]) -> None:
        super().restore(tensors, constants)
        self.embedding_strength = constants["embedding_strength"]


def mix_memory(embedded: Floats, attention: Floats, centroids: Floats, strength: float) -> Floats:
    """Return e(H) as unit rows: (sequences, dimension)."""
    sums = embedded + np.float32(strength) * (attention @ centroids)
    unit: Floats = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), np.float32(1e-12))
    return unit


def agreement_scores(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Return the scores of the candidates of the k-th list, corrected by the agreement."""
    agreed = agreement(judged.query_attention[k : k + 1], judged.attention[judged.place[k]])[0]
    corrected: Floats = judged.lists.scores[k] + np.float32(strength) * agreed
    return corrected


def divergence_scores(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Return the scores of the candidates of the k-th list, corrected by the divergence."""
    against = negative_divergence(judged.query_attention[k : k + 1], judged.attention[judged.place[k]])[0]
    corrected: Floats = judged.lists.scores[k] + np.float32(strength) * against
    return corrected


def embedding_scores(judged: JudgedLists, k: int, strength: float) -> Floats:
    """Return the cosines of the embeddings e(H) of the k-th list."""
    mine = mix_memory(judged.query_embedded[k : k + 1], judged.query_attention[k : k + 1], judged.centroids, strength)
    place = judged.place[k]
    theirs = mix_memory(judged.embedded[place], judged.attention[place], judged.centroids, strength)
    cosines: Floats = theirs @ mine[0]
    return cosines
