r"""Kullback-Leibler divergence between next-event distributions, in closed form.

A next event has a log-normal gap and a categorical mark, independent of each other, so their divergences add up:

.. math::
    \mathrm{KL}(N(\mu_1, \sigma_1) \| N(\mu_2, \sigma_2)) &= \log\frac{\sigma_2}{\sigma_1}
        + \frac{\sigma_1^2 + (\mu_1 - \mu_2)^2}{2 \sigma_2^2} - \frac12 \\
    \mathrm{KL}(m_1 \| m_2) &= \sum_x m_1(x) \log\frac{m_1(x)}{m_2(x)}

(The divergence does not change under the exponential map, so log-normals have the divergence of their normals.)
"""

from __future__ import annotations

from torch import Tensor

from neuroseqret.processes.heads import NextEvent


def all_pairs_divergence(first: NextEvent, first_mask: Tensor, second: NextEvent, second_mask: Tensor) -> Tensor:
    r"""Return :math:`\sum_{c \in H_c} \sum_{q \in H_q} \mathrm{KL}(p_c \| p_q)`, over all pairs of states.

    It takes time linear in the number of states.
    `first` holds (..., C, J) states and `second` (..., I), with masks of the same shapes; the result is (..., C). Every
    term is a product of one factor per side, so sums over each side are enough.
    """
    kind = first.mu.dtype
    # (mu_1 - mu_2)^2 is expanded below; in single precision the terms would cancel if the means are far from 0.
    first, second = (NextEvent(*(x.double() for x in vars(event).values())) for event in (first, second))
    one, two = first_mask.double(), second_mask.double()
    n1, n2 = one.sum(-1), two.sum(-1)[..., None]  # (..., C), (..., 1)
    precision = second.sigma.square().reciprocal() * two

    def total(values: Tensor) -> Tensor:
        return values.sum(-1)[..., None]

    second_moment = ((first.sigma.square() + first.mu.square()) * one).sum(-1)
    quadratic = (
        second_moment * total(precision)
        - 2 * (first.mu * one).sum(-1) * total(precision * second.mu)
        + n1 * total(precision * second.mu.square())
    )
    log_sigmas = n1 * total(second.sigma.log() * two) - (first.sigma.log() * one).sum(-1) * n2
    of_gap = log_sigmas + 0.5 * quadratic - 0.5 * n1 * n2
    marks = first.log_marks.exp() * one[..., None]  # (..., C, J, X)
    entropy = (marks * first.log_marks).sum((-1, -2))
    crossed = (marks.sum(-2) * (second.log_marks * two[..., None]).sum(-2)[..., None, :]).sum(-1)
    return (of_gap + entropy * n2 - crossed).to(kind)
