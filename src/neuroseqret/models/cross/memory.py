r"""A memory of relevant sets, to which queries and candidates attend; their agreement corrects the first stage.

A set S holds the corpus sequences that are relevant to the same train queries. The memory keeps its centroid
:math:`m_S` of first-stage embeddings v, and the tables of a Markov-renewal process conditioned on it (see
`processes.conditioned_tables`). A sequence attends to the sets by the evidence of both,

.. math:: a(S | H) = \mathrm{softmax}_S \bigl(w_0\, v(H)^\top m_S + \textstyle\sum_k w_k\, G_k(H | S)\bigr),
          \qquad w \ge 0.

The likelihood of one candidate given the query is too noisy to improve the ranking (it measured no gain over the first
stage), but pooled over sets it does. The score of a pair depends on query, candidate and memory only, not on the other
candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.processes.conditioned_tables import ConditionedTables

Floats = npt.NDArray[np.float32]

MOST_SETS = 4096
FLOOR = 0.05  # share of a query's attention that divergences spread evenly over all sets
_SCALE = 10.0  # the evidence is multiplied by this, which puts all weights near 1


def relevant_sets(relevance: Relevance, train_rows: IntArray, seed: int = 0) -> tuple[list[IntArray], IntArray]:
    """Return the distinct relevant sets of the train queries, and the set of each train query (-1: none).

    With groups there is one set per group. With qrels every query has its own set, and equal sets count once. At most
    `MOST_SETS` are kept, chosen at random.
    """
    keys = [relevance.of(row).tobytes() for row in train_rows]
    number = {key: 0 for key in keys if key}
    if len(number) > MOST_SETS:
        chosen = set(np.random.default_rng([seed, 3]).choice(len(number), MOST_SETS, replace=False).tolist())
        number = {key: 0 for k, key in enumerate(number) if k in chosen}
    for k, key in enumerate(number):
        number[key] = k
    return [np.frombuffer(key, np.int64) for key in number], np.array([number.get(key, -1) for key in keys], np.int64)


def centroids_of(embedded: Floats, sets: list[IntArray]) -> Floats:
    """Return the mean embedding of each set, scaled to unit length: (sets, dimension)."""
    means = np.stack([embedded[rows].mean(0) for rows in sets])
    return (means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def softmax(logits: Floats) -> Floats:
    """Return the softmax over the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Floats = (raised / raised.sum(-1, keepdims=True)).astype(np.float32)
    return shares


@dataclass
class RelevanceMemory:
    """The memory above; weights[0] is w_0, the others are the weights of the tables in order."""

    tables: ConditionedTables
    centroids: Floats  # (S, dimension)
    weights: Floats  # (1 + tables,)

    def attend(self, sequences: EventSequences, embedded: Floats) -> Floats:
        """Return a(S | H): (sequences, sets); `embedded` are the first-stage embeddings of the sequences."""
        gains = self.tables.weighted_gains(sequences, self.weights[1:])
        return softmax(_SCALE * (self.weights[0] * (embedded @ self.centroids.T) + gains))

    def evidence(self, sequences: EventSequences, embedded: Floats) -> Floats:
        """Return the cosine to each centroid, then the gains of the tables: (1 + tables, sequences, sets)."""
        return np.concatenate([(embedded @ self.centroids.T)[None], self.tables.gains(sequences)])


def agreement(queries: Floats, candidates: Floats) -> Floats:
    r"""Return the agreement of attentions :math:`\sum_S a(S | H_q)\, a(S | H_c)`: (Q, S) and (C, S) -> (Q, C)."""
    return queries @ candidates.T


def negative_divergence(queries: Floats, candidates: Floats) -> Floats:
    r"""Return minus the divergence between the joint distributions of set and next event: (Q, C).

    The next event of a sequence is drawn by :math:`S \sim a(\cdot | H)`, then :math:`e \sim p(\cdot | S)`. By the chain
    rule

    .. math:: \mathrm{KL}\bigl(p(S, e | H_c) \,\|\, p(S, e | H_q)\bigr) = \mathrm{KL}\bigl(a(\cdot | H_c) \,\|\,
              a(\cdot | H_q)\bigr),

    because the second step is the same in both. A share `FLOOR` of each query's attention is spread evenly over the
    sets, which bounds the divergence.
    """
    spread = (1 - FLOOR) * queries + FLOOR / queries.shape[1]
    own = (candidates * np.log(np.maximum(candidates, 1e-30))).sum(1)
    scores: Floats = np.log(spread) @ candidates.T - own
    return scores


def fit_weights(evidence: Floats, truth: IntArray, ridge: float = 1e-3) -> Floats:
    r"""Fit w >= 0 of the conditional logit :math:`\mathrm{softmax}_S(\sum_k w_k e_k)` by maximum likelihood.

    `evidence` is (K, queries, sets), `truth` (queries,) the right set of each query. Weights are non-negative because
    high evidence of any kind supports a set.
    """
    features, target = torch.from_numpy(_SCALE * evidence), torch.from_numpy(truth)
    roots = torch.full((len(evidence),), 0.3, requires_grad=True)
    optimizer = torch.optim.LBFGS([roots], max_iter=100, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        weights = roots.square()
        logits = torch.einsum("k,kqs->qs", weights, features)
        loss = torch.nn.functional.cross_entropy(logits, target) + ridge * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    fitted: Floats = roots.detach().square().numpy()
    return fitted
