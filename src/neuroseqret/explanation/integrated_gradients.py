r"""Integrated gradients through the metric: what each direction of the vector gives to the embedding.

The embedding f is followed along the straight path from the average sequence (the vector 0) to the vector v. The share
of a direction d, with :math:`\sum d = v`, is

.. math:: \int_0^1 J_f(\alpha v)\, d\; \mathrm d\alpha,

so that the shares sum to f(v) - f(0). For matrices and ReLU the integral has a closed form, for probabilities of groups
it is a sum over Gauss-Legendre nodes. What is left, f(0) and the error of the sum, belongs to the sequence as a whole.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from neuroseqret.models.base import Role
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.models.self_attention.projection import Projection

_NODES = 24  # of the path through the probabilities of groups


def through_metric(metric: Metric, directions: Tensor, vector: Tensor, role: Role) -> tuple[Tensor, Tensor]:
    """Return the shares of the directions (n, size) in the embedding, and what no direction has: (n, D) and (D,)."""
    moved, rest = [], []
    for member in metric.members():
        own, root = vector[member.columns], member.weight**0.5
        moved.append(root * through(member.projection, directions[:, member.columns], own))
        rest.append(root * of_average(member.projection, own))
    if metric.groups is not None:
        root = metric.group_weight**0.5
        shares, whole = through_groups(metric, torch.cat([directions, vector[None]]), vector)
        length = whole.norm() if role == "query" else torch.ones((), dtype=torch.float64)
        shares = torch.nn.functional.pad(shares, (0, 1)) * (root / length)
        moved.append(shares[:-1])
        rest.append(root * metric.groups.as_unit(whole[None], role)[0] - shares[-1])
    return torch.cat(moved, dim=1), torch.cat(rest)


def through_groups(metric: Metric, directions: Tensor, vector: Tensor) -> tuple[Tensor, Tensor]:
    """Return the shares of the directions in the (reduced) probabilities of the groups, and these: (n, g) and (g,)."""
    assert metric.groups is not None
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    place, weight = torch.from_numpy((nodes + 1) / 2), torch.from_numpy(weights / 2)
    members = [member for member in metric.members() if member.tells_groups]
    shares = torch.zeros(len(directions), metric.groups.groups, dtype=torch.float64)
    whole = torch.zeros(metric.groups.groups, dtype=torch.float64)
    for member in members:
        classifier = metric.groups.classifier(member.number)
        matrix, bias = classifier.weight.double().T, classifier.bias.double()
        entered, own = directions[:, member.columns], vector[member.columns]  # (n, columns)
        hidden = member.settings.kind == "mlp"
        if hidden:
            first, first_bias = member.projection.first[0].double(), member.projection.first_bias[0, 0].double()
            entered, reached = entered @ first, own @ first  # (n, hidden), (hidden,)
            path = place[:, None] * reached + first_bias  # (nodes, hidden)
            logits, end = torch.relu(path) @ matrix + bias, torch.relu(reached + first_bias) @ matrix + bias
        else:
            logits, end = place[:, None] * (own @ matrix) + bias, own @ matrix + bias
        for node, probability in enumerate(logits.softmax(1)):
            moved = (entered * (path[node] > 0) if hidden else entered) @ matrix  # (n, groups)
            shares += weight[node] * probability * (moved - (moved @ probability)[:, None])
        whole += end.softmax(0)
    return metric.groups.reduced(shares / len(members)), metric.groups.reduced(whole / len(members))


def through(projection: Projection, directions: Tensor, vector: Tensor) -> Tensor:
    """Return the integrated gradients of the head in these directions, normalised: (n, size) to (n, D)."""
    if projection.kind == "none":
        return directions / vector.norm().clamp(min=1e-12)
    weights = _as_double(projection)
    entered = directions @ weights["first"]  # (members, n, inner)
    if projection.kind == "mlp":
        p = vector[None] @ weights["first"]  # (members, 1, hidden)
        bias = weights["first_bias"]
        passed = torch.relu(p + bias) - torch.relu(bias)
        share = torch.where(p.abs() > 1e-12, passed / p, (bias > 0).to(p.dtype))
        entered = (entered * share) @ weights["second"]
    return _joined(entered / _length(projection, vector))


def of_average(projection: Projection, vector: Tensor) -> Tensor:
    """Return the head's output for the average sequence, divided by the length of its output for `vector`: (D,)."""
    if projection.kind == "none":
        return torch.zeros(projection.dimension, dtype=torch.float64)
    return _joined(_raw(projection, torch.zeros_like(vector)[None]) / _length(projection, vector))[0]


def _raw(projection: Projection, vectors: Tensor) -> Tensor:
    """Return the head's output before normalisation: (members, n, dimension)."""
    weights = _as_double(projection)
    inner = vectors @ weights["first"] + weights["first_bias"]
    return torch.relu(inner) @ weights["second"] + weights["second_bias"] if projection.kind == "mlp" else inner


def _length(projection: Projection, vector: Tensor) -> Tensor:
    return _raw(projection, vector[None]).norm(dim=-1, keepdim=True)


def _joined(parts: Tensor) -> Tensor:
    """Concatenate the members, as in the embedding."""
    return parts.transpose(0, 1).flatten(1) * len(parts) ** -0.5


def _as_double(projection: Projection) -> dict[str, Tensor]:
    return {name: value.double() for name, value in projection.named_parameters()}
