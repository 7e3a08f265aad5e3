r"""Members of the metric in closed form: a discriminant of the groups, and whitening without labels.

The discriminant (Fisher 1936, with a ridge) looks for directions in which groups differ more than the sequences of one
group do. With the covariance within groups :math:`S_w`, the mean variance :math:`\bar s` and the centred means of the
groups :math:`M` (weighted by the square roots of their shares),

.. math:: S = S_w + \lambda \bar s I = L L^\top, \qquad L^{-1} M^\top = U \Sigma V^\top, \qquad
          W = L^{-\top} U_d \Bigl(\frac{\Sigma_d^2}{\Sigma_d^2 + 1/n}\Bigr)^{1/2} \Sigma_d^{1/2},

where n is the mean size of a group: directions that the sample of a group cannot tell from noise are shrunk. The same
model tells the probability of a group, :math:`\mathrm{softmax}_g(\ell_g / 2)` with

.. math:: \ell_g(v) = \mu_g^\top S^{-1} v - \tfrac12 \mu_g^\top S^{-1} \mu_g.

The temperature 2 makes up for features that are neither independent nor normal.

Both are computed on the CPU, in double precision where it matters, whatever device the projection is on.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from neuroseqret.models.self_attention.projection import Projection

_IMPOSSIBLE = -30.0  # logit of a group without vectors


@torch.no_grad()
def fit_discriminant(
    projection: Projection, classifier: nn.Linear | None, vectors: Tensor, groups: Tensor, ridge: float
) -> None:
    """Fill a linear projection with the directions that tell the groups apart (unused ones stay 0), and a classifier.

    `vectors` is (n, size); `groups` (n,) counts from 0, up to the number of groups of the classifier if there is one.
    """
    mean = vectors.mean(0)
    centred = vectors - mean
    number = int(groups.max()) + 1 if classifier is None else classifier.out_features
    sizes = torch.bincount(groups, minlength=number).double()
    means = (
        torch.zeros(number, vectors.shape[1]).index_add(0, groups, centred) / sizes.clamp(min=1)[:, None]
    )  # (g, size)
    share = sizes / len(centred)
    total = (centred.T @ centred).double() / len(centred)
    within = total - (means * share[:, None]).T @ means
    within.diagonal().add_(ridge * max(float(total.diagonal().mean()), 1e-6))
    lower = torch.linalg.cholesky(within)
    there = sizes > 0
    half = torch.linalg.solve_triangular(lower, means[there].T, upper=False)  # (size, groups that there are)
    left, values, _ = torch.linalg.svd(half * share[there].sqrt(), full_matrices=False)
    kept = max(1, min(projection.dimension, int(there.sum()) - 1, left.shape[1]))
    power = values[:kept].square()
    weight = (power / (power + 1 / max(len(centred) / max(int(there.sum()), 1), 2.0))).sqrt() * values[:kept].sqrt()
    back = lower.T
    _fill(projection, torch.linalg.solve_triangular(back, left[:, :kept], upper=True) * weight, mean)
    if classifier is not None:
        weights = torch.linalg.solve_triangular(back, half, upper=True).T / 2  # (groups that there are, size)
        bias = -half.square().sum(0) / 4 - weights @ mean.double()
        classifier.weight.zero_()
        classifier.bias.fill_(_IMPOSSIBLE)
        there = there.to(classifier.bias.device)
        classifier.weight[there] = weights.float().to(classifier.weight.device)
        classifier.bias[there] = bias.float().to(classifier.bias.device)


@torch.no_grad()
def principal_directions(vectors: Tensor) -> Tensor:
    """Return the principal directions of vectors (n, size), the first one first: (size, size)."""
    centred = vectors - vectors.mean(0)
    return torch.linalg.eigh((centred.T @ centred).double())[1].flip(1)


@torch.no_grad()
def fit_whitened(projection: Projection, vectors: Tensor, directions: Tensor) -> None:
    """Fill a linear projection with the first principal directions of the vectors."""
    _fill(projection, directions[:, : projection.dimension], vectors.mean(0))


def _fill(projection: Projection, directions: Tensor, mean: Tensor) -> None:
    matrix = mean.new_zeros(projection.first.shape[1:])
    matrix[:, : directions.shape[1]] = directions.float()
    projection.first[0].copy_(matrix)
    projection.first_bias[0, 0].copy_(-(mean @ matrix))
