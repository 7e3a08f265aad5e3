r"""Training of the learned metric on cached vectors, for the model itself and for out-of-fold embeddings.

If there are more groups than a batch has anchors, the loss has a second term: every sequence has to find its own group
among all groups. For this each group has a learned unit vector :math:`p_g` (a proxy) during training:

.. math:: L = (1 - w) L_{\mathrm{rank}} + w \frac{1}{n} \sum_i -\log
          \frac{\exp(v_i^\top p_{g_i} / \tau)}{\sum_g \exp(v_i^\top p_g / \tau)}

A batch holds only some of the groups, while the proxies cover all. They are dropped after training. With few groups
there are no proxies: each would pull all members of its group to one point (on twitter, with four groups, this cost
1.4 points of MAP).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.models.presets import LossSettings, SelfAttentionSettings
from neuroseqret.models.self_attention.metric import Projection
from neuroseqret.training.losses import in_batch_softmax, pairwise_hinge
from neuroseqret.training.sampling import PairSampler

_FEWEST_STEPS = 300
_MOST_PROXIES = 4096  # more proxies would cost more time than the projection itself


class MetricTraining(nn.Module):
    """A projection and, if there are many groups but not too many, the proxies of the groups that can be drawn."""

    def __init__(
        self, size: int, settings: SelfAttentionSettings, sampler: PairSampler, seed: int, members: int | None = None
    ):
        super().__init__()
        p = settings.projection
        self.settings, self.sampler = settings.loss, sampler
        self.proxies: nn.Parameter | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.head = Projection(size, p.kind, p.hidden, p.dimension, p.dropout, members or p.members)
            groups = 0 if sampler.groups is None else len(sampler.groups)
            if p.kind != "none" and settings.loss.proxies and sampler.size < groups <= _MOST_PROXIES:
                self.proxies = nn.Parameter(0.1 * torch.randn(self.head.members, groups, p.dimension))

    def loss(self, queries: Tensor, corpus: Tensor, step: int) -> Tensor:
        """Return the loss of a step, averaged over the members, from the cached vectors of queries and corpus."""
        pairs = self.sampler.batch(step)
        rows = torch.cat([queries[pairs.queries], corpus[pairs.pseudo], corpus[pairs.corpus]])
        parts = self.head.parts(rows)  # (members, anchors + candidates, dimension)
        anchors = len(pairs.positive)
        scores = parts[:, :anchors] @ parts[:, anchors:].transpose(1, 2)
        ranking = torch.stack([ranking_loss(s, pairs.positive, pairs.ignore, self.settings) for s in scores]).mean()
        if self.proxies is None or self.sampler.groups is None:
            return ranking
        own = torch.from_numpy(np.searchsorted(self.sampler.groups, pairs.sets)).repeat(2 * self.head.members)
        logits = parts @ functional.normalize(self.proxies, dim=-1).transpose(1, 2) / self.settings.temperature
        return torch.lerp(ranking, functional.cross_entropy(logits.flatten(0, 1), own), self.settings.proxies)


def ranking_loss(scores: Tensor, positive: np.ndarray, ignore: np.ndarray, settings: LossSettings) -> Tensor:
    """Return the ranking loss of a block of scores that the settings name."""
    truth, left_out = torch.from_numpy(positive), torch.from_numpy(ignore)
    if settings.kind == "hinge":
        return pairwise_hinge(scores, truth, settings.margin, left_out)
    return in_batch_softmax(scores, truth, settings.temperature, left_out)


def affordable_steps(steps: int, size: int, settings: SelfAttentionSettings, members: int) -> int:
    """Return how many steps `head_work` allows: long vectors get fewer steps, so that the phase costs the same."""
    p = settings.projection
    of_step = 2 * settings.head_batch * size * members * (p.hidden if p.kind == "mlp" else 1)
    return min(steps, max(_FEWEST_STEPS, round(settings.head_work / of_step)))
