r"""Training of the members of the metric on cached vectors, for the model itself and for out-of-fold embeddings.

If there are more groups than a batch has anchors, the loss has a second term: every sequence has to find its own group
among all groups. For this each group has a learned unit vector :math:`p_g` (a proxy) per member during training:

.. math:: L = (1 - w) L_{\mathrm{rank}} + w \frac{1}{n} \sum_i -\log
          \frac{\exp(v_i^\top p_{g_i} / \tau)}{\sum_g \exp(v_i^\top p_g / \tau)}

A batch holds only some of the groups, while the proxies cover all. They are dropped after training. With few groups
there are no proxies: each would pull all members of its group to one point (on twitter, with four groups, this cost
1.4 points of MAP). With few groups each member has a classifier instead, on its hidden layer (`group_probabilities`),
whose cross-entropy is added to the loss.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from neuroseqret.models.presets import LossSettings
from neuroseqret.models.self_attention.metric import Member, Metric
from neuroseqret.models.self_attention.vectors import TrainingVectors
from neuroseqret.training import ranks
from neuroseqret.training.losses import in_batch_softmax, pairwise_hinge
from neuroseqret.training.sampling import PairSampler

_MOST_PROXIES = 4096  # more proxies would cost more time than the projections themselves
_SMOOTHING = 0.05  # of the labels, so that the probabilities of groups do not become certain


class MetricTraining(nn.Module):
    """The trained members of a metric and, if there are many groups but not too many, the proxies of the groups."""

    def __init__(self, metric: Metric, settings: LossSettings, sampler: PairSampler, seed: int) -> None:
        super().__init__()
        self.metric, self.settings, self.sampler, self.seed = metric, settings, sampler, seed
        self.trained: list[Member] = [member for member in metric.members() if member.settings.trained]
        for member in metric.members():
            member.projection.requires_grad_(member.settings.trained)
        self.proxies = nn.ParameterList()
        groups = 0 if sampler.groups is None else len(sampler.groups)
        if settings.proxies and sampler.size < groups <= _MOST_PROXIES:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                self.proxies.extend(0.1 * torch.randn(groups, m.projection.dimension) for m in self.trained)
            self.proxies.to(metric.device)

    def loss(self, vectors: TrainingVectors, step: int) -> Tensor:
        """Return the loss of a step, averaged over the members."""
        pairs = self.sampler.batch(step)
        rows = len(pairs.positive) + len(pairs.corpus)
        share = ranks.share(rows)  # of this process
        device = self.metric.device
        whole = vectors.rows(pairs, share=share).to(device)
        crops = any(member.settings.crops for member in self.trained)
        rng = np.random.default_rng([self.seed, step, 3])
        cropped = vectors.rows(pairs, rng, share).to(device) if crops else whole
        own, groups = None, self.metric.groups
        if self.sampler.groups is not None and (len(self.proxies) or groups is not None):
            own = torch.from_numpy(np.searchsorted(self.sampler.groups, pairs.sets)).to(device).repeat(2)
        losses, anchors = [], len(pairs.positive)
        for number, member in enumerate(self.trained):
            with ranks.own_randomness():
                unit, inner = member.both(cropped if member.settings.crops else whole)
            unit, inner = ranks.gathered(unit, rows), ranks.gathered(inner, rows)
            loss = ranking_loss(unit[:anchors] @ unit[anchors:].T, pairs.positive, pairs.ignore, self.settings)
            if own is not None and groups is not None and member.tells_groups:
                logits = groups.logits(member.number, inner)
                loss = loss + functional.cross_entropy(logits, own, label_smoothing=_SMOOTHING)
            if own is not None and len(self.proxies):
                logits = unit @ functional.normalize(self.proxies[number], dim=-1).T / self.settings.temperature
                loss = torch.lerp(loss, functional.cross_entropy(logits, own), self.settings.proxies)
            losses.append(loss)
        return torch.stack(losses).mean()


def ranking_loss(scores: Tensor, positive: np.ndarray, ignore: np.ndarray, settings: LossSettings) -> Tensor:
    """Return the ranking loss of a block of scores that the settings name."""
    truth, left_out = (torch.from_numpy(table).to(scores.device) for table in (positive, ignore))
    if settings.kind == "hinge":
        return pairwise_hinge(scores, truth, settings.margin, left_out, settings.over)
    return in_batch_softmax(scores, truth, settings.temperature, left_out)
