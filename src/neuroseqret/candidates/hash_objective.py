r"""The objective of the trainable hash, term by term; h_c = tanh(Lambda_psi(v_c)) in [-1, 1]^R for sequence c.

The paper's three terms (R is its D):

.. math::
    \frac{\eta_1}{|C|} \sum_c |1^\top h_c| + \frac{\eta_2}{|C|} \sum_c \| |h_c| - 1 \|_1
    + \frac{2 \eta_3}{\binom{R}{2}} \Big| \sum_{c, i \ne j} h_c[i] h_c[j] \Big|

The third sum equals sum_c (1^T h_c)^2 - ||h_c||^2. So, taken literally, it depends on the bits only through their sum,
and no term depends on similarity. The `default` preset has three other terms:

- balance, (1/R) sum_r (mean_c h_c[r])^2: every bit splits the corpus into halves (the first term above balances the
  bits within one sequence, which allows all sequences to share one code);
- similarity, the mean over pairs of (h_c . h_c' / R - s_cc')^2 with s_cc' = 1 - (2 / pi) arccos(v_c . v_c'), the value
  that random hyperplanes have on average: near sequences get near codes;
- decorrelation, the mean over pairs of bits of (mean_c h_c[i] h_c[j])^2: what the third term is meant to do.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def evenness(h: Tensor) -> Tensor:
    """(1/|C|) sum_c |1^T h_c|: as many +1 as -1 in every code."""
    return h.sum(1).abs().mean()


def saturation(h: Tensor) -> Tensor:
    """(1/|C|) sum_c || |h_c| - 1 ||_1: entries close to +1 or -1, so that tanh is close to the sign."""
    return (h.abs() - 1).abs().sum(1).mean()


def redundancy(h: Tensor, corpus_size: int | None = None) -> Tensor:
    """2 / (R choose 2) * |sum over c and i != j of h_c[i] h_c[j]|.

    The sum is over the whole corpus; the sum over a batch is scaled up to `corpus_size`.
    """
    n, r = h.shape
    total = (h.sum(1) ** 2 - (h**2).sum(1)).sum() * ((corpus_size or n) / n)
    return 2 / max(math.comb(r, 2), 1) * total.abs()


def balance(h: Tensor) -> Tensor:
    """(1/R) sum_r (mean_c h_c[r])^2: every bit is 1 for half of the corpus."""
    return (h.mean(0) ** 2).mean()


def decorrelation(h: Tensor) -> Tensor:
    """Mean over pairs of bits i != j of (mean_c h_c[i] h_c[j])^2: no two bits carry the same information."""
    n, r = h.shape
    correlation = h.T @ h / n
    off_diagonal = (correlation**2).sum() - (correlation.diagonal() ** 2).sum()
    return off_diagonal / max(r * (r - 1), 1)


def similarity(h: Tensor, v: Tensor) -> Tensor:
    """Mean over pairs of (h_c . h_c' / R - s_cc')^2, s = 1 - (2 / pi) angle(v_c, v_c')."""
    n, r = h.shape
    angle = torch.arccos((v @ v.T).clamp(-1, 1))
    gap = h @ h.T / r - (1 - (2 / math.pi) * angle)
    gap = gap - torch.diag(gap.diagonal())
    return (gap**2).sum() / max(n * (n - 1), 1)
