r"""The learned metric of `self` without gradients and without torch; every embedding on the CPU is made with it.

Importing torch takes longer than a search, and calling it for one query takes as long as the arithmetic. Where torch is
loaded anyway, it can still multiply the matrices of many rows (`product`).

The numbers are those of `self_attention.metric.Metric` up to rounding. Member m computes

.. math:: u_m = \mathrm{norm}(\mathrm{ReLU}(v_m A_m + a_m) B_m + b_m) \quad \text{or} \quad
          u_m = \mathrm{norm}(v_m A_m + a_m),

and the last one the probabilities of groups (see `self_attention.group_probabilities`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.models.base import Role
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import ProjectionSettings

Array = npt.NDArray[np.float32]
Product = Callable[[Array, Array, Array], Array]  # x, matrix and bias to x @ matrix + bias
#: Up to so many rows are multiplied by compiled loops. For products that small, threads of a library for linear algebra
#: cost more than they save.
FEW = 8
_FAST = {"contract", "reassoc", "nsz"}


@numba.njit(cache=True, nogil=True, fastmath=_FAST)
def _few_rows(x: Array, matrix: Array, found: Array) -> None:  # pragma: no cover
    """Add x @ matrix to `found`; the matrix, which is much larger than x, is read once."""
    for i in range(matrix.shape[0]):
        for row in range(x.shape[0]):
            value = x[row, i]
            for j in range(matrix.shape[1]):
                found[row, j] += value * matrix[i, j]


def many_rows(x: Array, matrix: Array, bias: Array) -> Array:
    """Return x @ matrix + bias."""
    found: Array = x @ matrix + bias
    return found


@dataclass(frozen=True)
class _Affine:
    """A matrix (inputs, outputs) and a bias (outputs,)."""

    matrix: Array
    bias: Array
    product: Product  # of many rows

    @classmethod
    def of(cls, matrix: Array, bias: Array, inputs: int, product: Product) -> _Affine:
        """Check that they fit; they may come from a file, and compiled loops do not check bounds."""
        if matrix.shape != (inputs, len(bias)) or bias.ndim != 1 or {matrix.dtype, bias.dtype} != {np.dtype("f4")}:
            raise ValueError(f"a matrix of shape {matrix.shape} does not map {inputs} numbers to {bias.shape}")
        return cls(np.ascontiguousarray(matrix), bias, product)

    def __call__(self, x: Array) -> Array:
        if len(x) > FEW:
            return self.product(x, self.matrix, self.bias)
        found = np.empty((len(x), len(self.bias)), np.float32)
        found[:] = self.bias
        _few_rows(x, self.matrix, found)
        return found


@dataclass(frozen=True)
class _Member:
    columns: slice
    share: np.float32  # the root of its weight
    first: _Affine | None  # None: the columns themselves
    second: _Affine | None  # None: there is no hidden layer
    classifier: _Affine | None  # of the groups, on what the member computes; None: there is none


class PlainMetric:
    """Maps vectors (B, size) to embeddings (B, dimension); `arrays` are the state of a `Metric`, which it shares."""

    def __init__(
        self,
        arrays: Mapping[str, npt.NDArray[Any]],
        settings: ProjectionSettings,
        layout: Layout,
        product: Product = many_rows,
    ) -> None:
        weights = arrays["weights"]
        roots = np.sqrt(weights / weights.sum()).astype(np.float32)
        self._directions: Array | None = arrays.get("groups.directions")
        self._members: list[_Member] = []
        self._groups_share = np.float32(0.0)
        groups = set()
        for number, (member, root) in enumerate(zip(settings.members, roots, strict=True)):
            if member.kind == "groups":
                self._groups_share = root
            if root <= 0 or member.kind == "groups":
                continue
            columns = layout.columns(member.sees)
            seen, first, second, classifier = columns.stop - columns.start, None, None, None
            if member.kind != "identity":
                first = _affine(arrays, f"projections.{number}.first", seen, product)
            if first is not None and member.kind == "mlp":
                seen = len(first.bias)
                second = _affine(arrays, f"projections.{number}.second", seen, product)
            if (weight := arrays.get(f"groups.classifiers.{number}.weight")) is not None:
                classifier = _Affine.of(weight.T, arrays[f"groups.classifiers.{number}.bias"], seen, product)
                groups.add(len(classifier.bias))
            self._members.append(_Member(columns, root, first, second, classifier))
        self._kept = sum(groups)  # coordinates of an embedding that hold probabilities
        if len(groups) > 1:
            raise ValueError(f"the classifiers know {sorted(groups)} groups")
        if self._directions is not None:
            if self._directions.ndim != 2 or len(self._directions) != self._kept:
                raise ValueError(f"directions of shape {self._directions.shape} for {self._kept} groups")
            self._kept = self._directions.shape[1]

    def __call__(self, vectors: Array, role: Role) -> Array:
        """Return the embeddings: (B, dimension)."""
        found, total, classifiers = [], np.float32(0.0), 0
        for member in self._members:
            part = inner = vectors[:, member.columns]
            if member.first is not None:
                inner = member.first(inner)
            if member.second is not None:
                part = np.maximum(inner, 0)  # what the classifier of groups sees
                inner = member.second(part)
            found.append(_unit(inner) * member.share)
            if member.classifier is not None:
                logits = member.classifier(part)
                powers = np.exp(logits - logits.max(1, keepdims=True))
                total = total + powers / powers.sum(1, keepdims=True)
                classifiers += 1
        if classifiers:
            found.append(self._as_unit(total / np.float32(classifiers), role) * self._groups_share)
        return np.concatenate(found, axis=1)

    def as_query(self, embeddings: Array) -> Array:
        """Return embeddings of corpus sequences as those of queries (see `Metric.as_query`)."""
        if not self._kept:
            return embeddings
        probability = _unit(embeddings[:, -self._kept - 1 : -1]) * self._groups_share
        rest = np.zeros_like(embeddings[:, :1])
        return np.concatenate([embeddings[:, : -self._kept - 1], probability, rest], axis=1)

    def _as_unit(self, probabilities: Array, role: Role) -> Array:
        """Return probabilities as unit vectors (see `GroupProbabilities.as_unit`)."""
        kept = probabilities if self._directions is None else probabilities @ self._directions
        if role == "query":
            return np.concatenate([_unit(kept), np.zeros_like(kept[:, :1])], axis=1)
        rest = np.sqrt(np.maximum(1 - np.square(kept).sum(1, keepdims=True), 0))
        return np.concatenate([kept, rest], axis=1)


def _affine(arrays: Mapping[str, npt.NDArray[Any]], place: str, inputs: int, product: Product) -> _Affine:
    """Return a layer of a projection with one member."""
    matrix, bias = arrays[place], arrays[f"{place}_bias"]
    if matrix.shape[:1] != (1,) or bias.shape[:2] != (1, 1):
        raise ValueError(f"{place} has the shape {matrix.shape}, its bias {bias.shape}")
    return _Affine.of(matrix[0], bias[0, 0], inputs, product)


def _unit(x: Array) -> Array:
    found: Array = x / np.maximum(np.sqrt(np.square(x).sum(1, keepdims=True)), np.float32(1e-12))
    return found
