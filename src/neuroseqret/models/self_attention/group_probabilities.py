r"""The probability of every known group, given a sequence; and how a product of probabilities becomes a cosine.

Each classifier k turns what a member of the metric computes into probabilities; these are averaged:

.. math:: p(g | H) = \frac1K \sum_k \mathrm{softmax}_g(W_k x_k(H) + b_k).

For an `mlp` member, x is its hidden layer, trained by cross-entropy beside the ranking loss. For the discriminant, x is
the vector itself, and W and b are in closed form. The score of two sequences is the probability that both are of one
group, for each query up to a factor:

.. math:: s(q, c) = \frac{1}{\|p(\cdot | q)\|} \sum_g p(g | q)\, p(g | c).

Unlike a cosine of probabilities it ranks candidates higher if their group is certain. An index compares unit vectors:
that of a query is :math:`(p / \|p\|, 0)`, that of a corpus sequence :math:`(p, \sqrt{1 - \|p\|^2})`.

With many groups p would make embeddings long. It is then replaced by :math:`p D`, where D holds the first right
singular vectors of the probabilities of the training corpus.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.models.base import Role

MOST_GROUPS = 4096  # with more, classifiers would cost more than all the rest
KEPT = 256  # most coordinates of an embedding that hold probabilities


class GroupProbabilities(nn.Module):
    """Classifiers on top of members of the metric; `sizes` are the lengths of what they see, by number of member."""

    directions: Tensor | None  # D (groups, KEPT); None if there are not more groups than that

    def __init__(self, groups: int, sizes: dict[int, int]) -> None:
        super().__init__()
        self.groups = groups
        self.classifiers = nn.ModuleDict({str(number): nn.Linear(size, groups) for number, size in sizes.items()})
        self.register_buffer("directions", torch.zeros(groups, KEPT) if groups > KEPT else None)

    @property
    def length(self) -> int:
        """The number of coordinates that probabilities take in an embedding, with the one that fills them up."""
        return min(self.groups, KEPT) + 1

    def classifier(self, number: int) -> nn.Linear:
        """Return the classifier of one member."""
        found = self.classifiers[str(number)]
        assert isinstance(found, nn.Linear)
        return found

    def logits(self, number: int, seen: Tensor) -> Tensor:
        """Return the logits of one classifier: (B, groups)."""
        found: Tensor = self.classifier(number)(seen)
        return found

    @torch.no_grad()
    def fit_directions(self, seen: dict[int, Tensor], seed: int) -> None:
        """Find the directions that keep most of the probabilities of these sequences."""
        if self.directions is None:
            return
        probabilities = self.mean(seen).cpu()  # not every device has a singular value decomposition
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found = torch.svd_lowrank(probabilities, min(KEPT, len(probabilities)), niter=4)[2]
        self.directions.zero_()
        self.directions[:, : found.shape[1]] = found.to(self.directions.device)

    def reduced(self, probabilities: Tensor) -> Tensor:
        """Return probabilities in the directions that are kept: (B, groups) to (B, length - 1)."""
        return probabilities if self.directions is None else probabilities @ self.directions.to(probabilities.dtype)

    @staticmethod
    def as_unit(probabilities: Tensor, role: Role) -> Tensor:
        """Return (reduced) probabilities as unit vectors: (B, n) to (B, n + 1)."""
        if role == "query":
            return functional.pad(functional.normalize(probabilities, dim=1), (0, 1))
        rest = (1 - probabilities.square().sum(1, keepdim=True)).clamp(min=0.0).sqrt()
        return torch.cat([probabilities, rest], dim=1)

    def mean(self, seen: dict[int, Tensor]) -> Tensor:
        """Return the mean probabilities: (B, groups)."""
        return torch.stack([self.logits(number, x).softmax(1) for number, x in seen.items()]).mean(0)

    def forward(self, seen: dict[int, Tensor]) -> Tensor:
        """Return the mean probabilities as an embedding keeps them: (B, length - 1)."""
        return self.reduced(self.mean(seen))
