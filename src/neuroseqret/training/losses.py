"""Ranking losses over a block of scores: queries in rows, candidates in columns.

Both take a truth table of the same shape, so that every query of a batch uses every candidate: a candidate relevant to
one query is an in-batch negative for the others.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Over = Literal["active", "all"]  # the pairs that a hinge is averaged over


def in_batch_softmax(
    scores: Tensor, positive: Tensor, temperature: float = 0.1, ignore: Tensor | None = None
) -> Tensor:
    r"""Return the multi-positive softmax loss over the candidates, averaged over the queries that have a positive.

    .. math:: -\frac{1}{|Q|} \sum_q \frac{1}{|P_q|} \sum_{p \in P_q}
              \log \frac{\exp(s_{qp}/\tau)}{\sum_c \exp(s_{qc}/\tau)}

    `scores` (Q, C), `positive` (Q, C) bool; pairs in `ignore` (Q, C) bool, such as a sequence and itself, are left out.
    A batch without any positive gives 0.
    """
    logits = scores / temperature
    if ignore is not None:
        logits = logits.masked_fill(ignore, -torch.inf)
        positive = positive & ~ignore
    log_softmax = logits.log_softmax(1)
    number = positive.sum(1)
    mean = log_softmax.masked_fill(~positive, 0.0).sum(1) / number.clamp(min=1)
    return -mean.sum() / (number > 0).sum().clamp(min=1)


def pairwise_hinge(
    scores: Tensor, positive: Tensor, margin: float = 0.5, ignore: Tensor | None = None, over: Over = "active"
) -> Tensor:
    r"""Return the paper's pairwise ranking loss, averaged over the active pairs or over all pairs.

    .. math:: \frac{1}{|A|} \sum_q \sum_{c_+, c_-} [s_{qc_-} - s_{qc_+} + \delta]_+, \qquad
              A = \{(q, c_+, c_-) : s_{qc_-} - s_{qc_+} + \delta > 0\}

    With `over="all"`, A holds every pair: the paper's sum up to a factor. This mean vanishes during training, because
    most pairs are soon in the right order; the mean over the active ones does not.
    """
    counts = positive if ignore is None else positive & ~ignore
    negative = ~positive if ignore is None else ~positive & ~ignore
    query, plus = counts.nonzero(as_tuple=True)
    violation = scores[query] - scores[query, plus][:, None] + margin  # (positive pairs, C)
    violation = violation.masked_fill(~negative[query], 0.0).clamp(min=0.0)
    pairs = negative[query].sum() if over == "all" else (violation > 0).sum()
    return violation.sum() / pairs.clamp(min=1)


def number_of_pairs(positive: Tensor, ignore: Tensor | None = None) -> int:
    """Return how many (query, positive, negative) the sum of the paper's loss runs over."""
    counted = torch.ones_like(positive) if ignore is None else ~ignore
    return int(((positive & counted).sum(1) * (~positive & counted).sum(1)).sum())
