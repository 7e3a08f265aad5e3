r"""A memory of relevant sets, to which queries and candidates attend; their agreement corrects the first stage.

Every set S of corpus sequences that answer the same train queries is kept as a centroid :math:`m_S` of first-stage
embeddings v and as the tables of a Markov-renewal process conditioned on it (see `conditioned`). A sequence attends
to the sets by the evidence of both,

.. math:: a(S | H) = \mathrm{softmax}_S \bigl(w_0\, v(H)^\top m_S + \textstyle\sum_k w_k\, G_k(H | S)\bigr),
          \qquad w \ge 0.

One candidate's likelihood given the query is too noisy to move it (measured: no gain over the first stage); pooled
over the sets it is strong. What is made of two attentions depends on query, candidate and memory alone, not on the
other candidates.
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
FLOOR = 0.05  # share of a query's attention that is spread over all sets, in divergences
_SCALE = 10.0  # evidence is weighed in tenths, which puts all weights near 1


def relevant_sets(relevance: Relevance, train_rows: IntArray, seed: int = 0) -> tuple[list[IntArray], IntArray]:
    """The different relevant sets of the train queries, and the set of each train query (-1: none).

    With groups that is one set a group. With qrels every query has its own, equal ones count once, and beyond
    `MOST_SETS` a random choice is kept.
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
    """Unit mean embedding of each set: (sets, dimension)."""
    means = np.stack([embedded[rows].mean(0) for rows in sets])
    return (means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)).astype(np.float32)


def softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    raised = np.exp(logits - logits.max(-1, keepdims=True))
    shares: Floats = (raised / raised.sum(-1, keepdims=True)).astype(np.float32)
    return shares


@dataclass
class RelevanceMemory:
    """See the module's docstring; weights[0] is w_0, the rest are the tables' in order."""

    tables: ConditionedTables
    centroids: Floats  # (S, dimension)
    weights: Floats  # (1 + tables,)

    def attend(self, sequences: EventSequences, embedded: Floats) -> Floats:
        """a(S | H): (sequences, sets); `embedded` are their first-stage embeddings."""
        gains = self.tables.weighted_gains(sequences, self.weights[1:])
        return softmax(_SCALE * (self.weights[0] * (embedded @ self.centroids.T) + gains))

    def evidence(self, sequences: EventSequences, embedded: Floats) -> Floats:
        """(1 + tables, sequences, sets): cosine to each centroid, then the gains; what the weights are learned from."""
        return np.concatenate([(embedded @ self.centroids.T)[None], self.tables.gains(sequences)])


def product(queries: Floats, candidates: Floats) -> Floats:
    r"""Agreement of attentions: :math:`\sum_S a(S | H_q)\, a(S | H_c)`, (Q, S) and (C, S) -> (Q, C)."""
    return queries @ candidates.T


def negative_divergence(queries: Floats, candidates: Floats) -> Floats:
    r"""Minus the divergence of next-event distributions, each with the set that the event is drawn from: (Q, C).

    A sequence's next event is drawn by :math:`S \sim a(\cdot | H)`, then :math:`e \sim p(\cdot | S)`. By the chain rule

    .. math:: \mathrm{KL}\bigl(p(S, e | H_c) \,\|\, p(S, e | H_q)\bigr) = \mathrm{KL}\bigl(a(\cdot | H_c) \,\|\,
              a(\cdot | H_q)\bigr),

    as the second step is the same in both. A twentieth of each query's attention is spread evenly, which bounds it.
    """
    spread = (1 - FLOOR) * queries + FLOOR / queries.shape[1]
    own = (candidates * np.log(np.maximum(candidates, 1e-30))).sum(1)
    scores: Floats = np.log(spread) @ candidates.T - own
    return scores


def fit_weights(evidence: Floats, truth: IntArray, ridge: float = 1e-3) -> Floats:
    r"""w of the conditional logit :math:`\mathrm{softmax}_S(\sum_k w_k e_k)`, w >= 0, by maximum likelihood.

    `evidence` (K, queries, sets) and `truth` (queries,), the right set of each query. Non-negative, since every
    kind of evidence speaks for a set when it is high.
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
