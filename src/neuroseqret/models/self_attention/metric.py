r"""The learned metric on top of the whitened vectors: members that see different parts of the vector.

Member m sees the columns :math:`v_m` of the vector and returns a unit vector :math:`u_m = \mathrm{norm}(f_m(v_m))`. The
embedding is the members side by side, member m times :math:`\sqrt{w_m}`, so that the score is the weighted mean of
their cosines:

.. math:: \kappa(q, c) = \sum_m w_m\, u_m(q)^\top u_m(c), \qquad w_m \ge 0, \quad \sum_m w_m = 1.

One member is made of the others: the probability of every known group (see `group_probabilities`).

Members of weight 0 are neither trained nor saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.models.base import Role
from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import MemberSettings, ProjectionSettings
from neuroseqret.models.self_attention.group_probabilities import GroupProbabilities
from neuroseqret.models.self_attention.projection import Kind, Projection

TELLS_GROUPS = ("mlp", "discriminant")  # kinds of members that a classifier of the groups builds on


@dataclass(frozen=True)
class Member:
    """A member of the metric: its settings, its columns of the vector, its weight, and its projection."""

    number: int
    settings: MemberSettings
    columns: slice
    weight: float
    projection: Projection

    def __call__(self, vectors: Tensor) -> Tensor:
        """Return its unit vectors: (B, size of the vector) to (B, its dimension)."""
        unit: Tensor = self.projection(vectors[:, self.columns])
        return unit

    @property
    def tells_groups(self) -> bool:
        """Whether a classifier of the groups builds on it."""
        return self.settings.kind in TELLS_GROUPS

    def both(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return its unit vectors, and what its classifier sees: the hidden layer, or the columns themselves."""
        seen = vectors[:, self.columns]
        if self.settings.kind != "mlp":
            return self.projection(seen), seen
        inner = self.projection.inner(seen)
        return self.projection.unit(inner)[0], inner[0]


class Metric(nn.Module):
    """Maps vectors (B, size) to unit rows (B, dimension): the members of positive weight side by side."""

    weights: Tensor

    def __init__(
        self,
        layout: Layout,
        settings: ProjectionSettings,
        weights: Sequence[float] | None = None,
        groups: int = 0,  # known groups; 0: no probabilities
    ) -> None:
        super().__init__()
        given = [m.weight for m in settings.members] if weights is None else weights
        columns = [layout.columns(member.sees) for member in settings.members]
        possible = [
            groups > 0 if m.kind == "groups" else c.stop > c.start
            for m, c in zip(settings.members, columns, strict=True)
        ]
        used = torch.tensor(given) * torch.tensor(possible)
        self.register_buffer("weights", used / used.sum())
        self._shares: list[float] = self.weights.tolist()  # the same as numbers, on whatever device the metric is
        self.layout, self.settings = layout, settings
        self.projections = nn.ModuleDict()
        self.groups: GroupProbabilities | None = None
        self.group_member = next((n for n, m in enumerate(settings.members) if m.kind == "groups"), -1)
        tell_groups = {
            number: settings.hidden if member.kind == "mlp" else seen.stop - seen.start
            for number, (member, seen) in enumerate(zip(settings.members, columns, strict=True))
            if self._shares[number] > 0 and member.kind in TELLS_GROUPS
        }
        for number, (member, seen) in enumerate(zip(settings.members, columns, strict=True)):
            if self._shares[number] > 0:
                if member.kind == "groups":
                    self.groups = GroupProbabilities(groups, tell_groups)
                else:
                    self.projections[str(number)] = _projection(member, seen.stop - seen.start, settings)

    def members(self) -> Iterator[Member]:
        """Yield the members of positive weight that have a projection."""
        for name, projection in self.projections.items():
            number = int(name)
            settings = self.settings.members[number]
            assert isinstance(projection, Projection)
            columns, weight = self.layout.columns(settings.sees), self._shares[number]
            yield Member(number, settings, columns, weight, projection)

    @property
    def device(self) -> torch.device:
        """The device of its numbers."""
        return self.weights.device

    @property
    def group_weight(self) -> float:
        """The weight of the member of groups, 0 if there is none."""
        return 0.0 if self.groups is None else self._shares[self.group_member]

    @property
    def dimension(self) -> int:
        """Length of an embedding."""
        own = sum(member.projection.dimension for member in self.members())
        return own if self.groups is None else own + self.groups.length

    @torch.no_grad()
    def fit_directions(self, vectors: Tensor, seed: int) -> None:
        """Fit what makes the probabilities of many groups short, on the vectors of some sequences."""
        if self.groups is not None:
            seen = {m.number: m.both(vectors)[1] for m in self.members() if m.tells_groups}
            self.groups.fit_directions(seen, seed)

    def units(self, vectors: Tensor, role: Role = "corpus") -> dict[int, Tensor]:
        """Return the unit vectors of every member by its number; those of the groups come last."""
        units, seen = {}, {}
        for member in self.members():
            units[member.number], inner = member.both(vectors)
            if member.tells_groups:
                seen[member.number] = inner
        if self.groups is not None:
            units[self.group_member] = self.groups.as_unit(self.groups(seen), role)
        return units

    def forward(self, vectors: Tensor, role: Role = "corpus") -> Tensor:
        """Return the embeddings: (B, dimension)."""
        return torch.cat([self._shares[m] ** 0.5 * unit for m, unit in self.units(vectors, role).items()], dim=1)

    def as_query(self, embeddings: Tensor) -> Tensor:
        """Return embeddings of corpus sequences as those of queries (see `GroupProbabilities.as_unit`)."""
        if self.groups is None:
            return embeddings
        length = self.groups.length
        probability = functional.normalize(embeddings[:, -length:-1], dim=1) * self.group_weight**0.5
        return torch.cat([embeddings[:, :-length], functional.pad(probability, (0, 1))], dim=1)


def _projection(member: MemberSettings, size: int, settings: ProjectionSettings) -> Projection:
    if member.kind == "identity":
        return Projection(size, "none")
    if member.kind == "whitened":
        return Projection(size, "linear", dimension=min(member.directions, size), dropout_share=0.0)
    kind: Kind = "mlp" if member.kind == "mlp" else "linear"
    return Projection(size, kind, settings.hidden, settings.dimension, settings.dropout)
