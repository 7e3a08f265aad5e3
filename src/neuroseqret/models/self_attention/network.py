"""The network of SelfAttention: point process, whitened vector, metric. It works on tensors only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from neuroseqret.models.fixed_features import Layout
from neuroseqret.models.presets import PARTS, Part, SelfAttentionSettings
from neuroseqret.models.self_attention.metric import Metric
from neuroseqret.processes import fisher
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.neural_process import NeuralProcess
from neuroseqret.processes.time_scale import Inputs
from neuroseqret.processes.unwarp import Unwarp

MAX_EVENTS = 12288  # positions encoded at once: more do not fit into the cache, fewer need more calls
VECTOR_FAR = 5.0  # coordinates are clipped here before the projection


@dataclass(frozen=True)
class Raw:
    """What the point process computes for B sequences, before whitening."""

    score: Tensor  # (B, F) gradient of log p by the parameters of the heads, or by all
    pooled: Tensor  # (B, 3 D) mean, sd and maximum of the states
    log_likelihood: Tensor  # (B,), 0 if it was not asked for


class RelevanceNetwork(nn.Module):
    """Maps features and inputs of the neural process (if there is one) to embeddings: `raw`, `vector`, `metric`."""

    pooled_mean: Tensor
    pooled_sd: Tensor
    process: NeuralProcess

    def __init__(
        self,
        classes: MarkClasses,
        fixed: dict[Part, int],  # sizes of the parts that need no training
        settings: SelfAttentionSettings,
        horizon: float = 1.0,
        weights: Sequence[float] | None = None,  # of the members of the metric
        groups: int = 0,  # known groups
    ) -> None:
        super().__init__()
        self.settings, self.horizon = settings, horizon
        width, v = settings.encoder.width, settings.vector
        self.fisher_size = 0
        if v.neural:
            e = settings.encoder
            sizes = e.width, e.blocks, e.heads, e.dropout, e.max_length
            self.process = NeuralProcess(classes, *sizes, v.survival, e.reads, len(settings.values))
            self.fisher_size = (2 + classes.number) * (width + 1)
            if v.fisher == "all":
                self.fisher_size = sum(p.numel() for p in self.process.parameters())
            self.information = fisher.DiagonalInformation(self.fisher_size)
            if not v.whitening:
                self.information.moment.fill_(1.0)
            self.register_buffer("pooled_mean", torch.zeros(3 * width))
            self.register_buffer("pooled_sd", torch.zeros(3 * width))
        neural = (v.fisher != "none") * self.fisher_size + v.pooled * 3 * width
        self.layout = Layout({part: fixed.get(part, 0) for part in PARTS} | {"process": neural})
        self.metric = Metric(self.layout, settings.projection, weights, groups)
        u = settings.unwarp
        self.unwarp = None if u is None else Unwarp(horizon, u.hidden, u.sigma)

    @property
    def size(self) -> int:
        """The length of the vector."""
        return self.layout.size

    # ---------------------------------------------------------------- point process

    def raw(self, inputs: Inputs, likelihood: bool = False) -> Raw:
        """Compute gradient, pooled states and (if asked for) likelihood; a long sequence is the sum of its blocks."""
        length = self.settings.encoder.max_length
        if inputs.mask.shape[1] <= length:
            return _finish(*self._sums(inputs, likelihood))
        blocks, owner = split_blocks(inputs, length)
        together = max(1, MAX_EVENTS // blocks.mask.shape[1])
        parts = [
            self._sums(take(blocks, chunk), likelihood)
            for chunk in torch.arange(len(owner), device=owner.device).split(together)
        ]
        score, log_p, first, second, number, top = (torch.cat(x) for x in zip(*parts, strict=True))
        added = [x.new_zeros(len(inputs), *x.shape[1:]).index_add(0, owner, x)
                 for x in (score, log_p, first, second, number)]  # fmt: skip
        highest = top.new_full((len(inputs), top.shape[1]), -torch.inf)
        highest = highest.scatter_reduce(0, owner[:, None].expand_as(top), top, "amax")
        return _finish(added[0], added[1], added[2], added[3], added[4], highest)

    def _sums(self, inputs: Inputs, likelihood: bool) -> tuple[Tensor, ...]:
        """Return, for every row: score, log p, sum of states, sum of their squares and number of events, which add up
        over blocks; and the maximum of the states."""
        seen = self.process.seen(inputs)
        states = self.process.encoder(seen)
        if self.settings.vector.fisher == "all":
            score = fisher.full_score(self.process, inputs)
        else:
            score = fisher.score(self.process.heads, seen, states, self.process.survival)
        log_p = states.new_zeros(len(states))
        if likelihood:
            log_p = self.process.heads.log_likelihood(seen, states, self.process.survival)
        mask = inputs.mask[:, :, None]
        after = states[:, 1:]
        kept = after * mask
        padding = torch.zeros_like(mask, dtype=after.dtype).masked_fill_(~mask, -torch.inf)
        top = (after + padding).amax(1) if after.shape[1] else states[:, 0] * 0
        return score, log_p, kept.sum(1), kept.square().sum(1), inputs.lengths, top

    # ---------------------------------------------------------------- vector and embedding

    def vector(self, raw: Raw | None, fixed: Tensor | None) -> Tensor:
        """Return the whitened parts, concatenated, with coordinates of size about 1: (B, size)."""
        parts = [] if fixed is None else [fixed]
        if raw is not None and self.settings.vector.fisher != "none":
            unit = self.information.whiten(raw.score)
            parts.append((unit * self.fisher_size**0.5).clamp(-VECTOR_FAR, VECTOR_FAR) if self.projected else unit)
        if raw is not None and self.settings.vector.pooled:
            parts.append(((raw.pooled - self.pooled_mean) / (self.pooled_sd + 1e-3)).clamp(-VECTOR_FAR, VECTOR_FAR))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    @property
    def projected(self) -> bool:
        """Whether there is a learned metric on top of the vector."""
        return self.settings.projection.learned

    # ---------------------------------------------------------------- statistics of the corpus

    @torch.no_grad()
    def update_whitening(self, raw: Raw) -> None:
        """Update the running whitening while the model is trained (stop-gradient)."""
        if self.settings.vector.whitening:
            self.information.update(raw.score)
        mean, sd = raw.pooled.mean(0), raw.pooled.std(0, unbiased=False)
        rate = 0.05 if self.pooled_sd.any() else 1.0
        self.pooled_mean.lerp_(mean, rate)
        self.pooled_sd.lerp_(sd, rate)

    @torch.no_grad()
    def fit_whitening(self, raw: Raw) -> None:
        """Compute the whitening exactly, from the raw vectors of the whole corpus."""
        if self.settings.vector.whitening:
            self.information.moment.copy_(raw.score.square().mean(0))
        self.pooled_mean.copy_(raw.pooled.mean(0))
        self.pooled_sd.copy_(raw.pooled.std(0, unbiased=False))


def _finish(score: Tensor, log_p: Tensor, first: Tensor, second: Tensor, number: Tensor, top: Tensor) -> Raw:
    count = number.clamp(min=1)[:, None]
    mean = first / count
    sd = (second / count - mean.square()).clamp(min=1e-6).sqrt()
    return Raw(score, torch.cat([mean, sd, torch.nan_to_num(top, neginf=0.0)], dim=1), log_p)


def take(inputs: Inputs, rows: Tensor) -> Inputs:
    """Return some rows of the inputs."""
    return Inputs(*(x[rows] for x in vars(inputs).values()))


def split_blocks(inputs: Inputs, length: int) -> tuple[Inputs, Tensor]:
    """Cut rows into blocks of at most `length` events; return the blocks and the row that each block came from.

    A row of n events gives ceil(n / length) blocks of about equal size, whatever the other rows are.
    """
    events, device = inputs.lengths, inputs.mask.device
    number = (events + length - 1).div(length, rounding_mode="floor").clamp(min=1)  # blocks of each row
    size = (events + number - 1).div(number, rounding_mode="floor")
    owner = torch.arange(len(inputs), device=device).repeat_interleave(number)
    rank = torch.arange(len(owner), device=device) - (number.cumsum(0) - number)[owner]
    first = rank * size[owner]
    kept = (events[owner] - first).clamp(min=0).minimum(size[owner])
    column = torch.arange(int(size.max()), device=device)
    inside = column < kept[:, None]
    index = (first[:, None] + column).clamp(max=inputs.mask.shape[1] - 1)
    row = owner[:, None]
    blocks = Inputs(
        inputs.values[row, index] * inside[:, :, None],
        inputs.marks[row, index] * inside,
        inside,
        inputs.timed[row, index] & inside,
        inputs.gaps[row, index] * inside,
        inputs.tail[owner],
        inputs.open_end[owner] & (rank == number[owner] - 1),  # only the last block reaches the window's end
        inputs.times[row, index] * inside,
    )
    return blocks, owner


def likelihood_per_event(raw: Raw, inputs: Inputs) -> Tensor:
    """Return the negative log-likelihood per event, averaged over the sequences of the batch."""
    return -(raw.log_likelihood / inputs.lengths.clamp(min=1)).mean()
