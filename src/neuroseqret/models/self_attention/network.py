"""The network of a relevance model: point process, whitened vector, projection; it sees tensors, no data."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from neuroseqret.models.presets import SelfAttentionSettings
from neuroseqret.models.self_attention.projection import Projection
from neuroseqret.processes import fisher
from neuroseqret.processes.mark_classes import MarkClasses
from neuroseqret.processes.neural_process import NeuralProcess
from neuroseqret.processes.time_scale import Inputs
from neuroseqret.processes.unwarp import Unwarp

MAX_EVENTS = 12288  # positions that are encoded at once: more would leave the cache, fewer pay more calls
VECTOR_FAR = 5.0  # coordinates are clipped here before the projection


@dataclass(frozen=True)
class Raw:
    """What the point process says of B sequences, before whitening."""

    score: Tensor  # (B, F) gradient of log p by the parameters of the heads, or by all
    pooled: Tensor  # (B, 3 D) mean, sd and maximum of the states
    log_likelihood: Tensor  # (B,), 0 where it was not asked for


class RelevanceNetwork(nn.Module):
    """Inputs (and Markov-renewal features) to embeddings."""

    pooled_mean: Tensor
    pooled_sd: Tensor

    def __init__(
        self, classes: MarkClasses, markov_size: int, settings: SelfAttentionSettings, horizon: float = 1.0
    ) -> None:
        super().__init__()
        self.settings, width = settings, settings.encoder.width
        e = settings.encoder
        self.process = NeuralProcess(
            classes, e.width, e.blocks, e.heads, e.dropout, e.max_length, settings.vector.survival
        )
        self.fisher_size = (2 + classes.number) * (width + 1)
        if settings.vector.fisher == "all":
            self.fisher_size = sum(p.numel() for p in self.process.parameters())
        self.information = fisher.DiagonalInformation(self.fisher_size)
        if not settings.vector.whitening:
            self.information.moment.fill_(1.0)
        self.register_buffer("pooled_mean", torch.zeros(3 * width))
        self.register_buffer("pooled_sd", torch.zeros(3 * width))
        v, p = settings.vector, settings.projection
        self.size = (v.fisher != "none") * self.fisher_size + v.pooled * 3 * width + (markov_size if v.markov else 0)
        self.projection = Projection(self.size, p.kind, p.hidden, p.dimension, p.dropout, p.members)
        u = settings.unwarp
        self.unwarp = None if u is None else Unwarp(horizon, u.hidden, u.sigma)

    # ---------------------------------------------------------------- point process

    def raw(self, inputs: Inputs, likelihood: bool = False) -> Raw:
        """Gradient and pooled states (and likelihood); a sequence longer than a block is the sum of its blocks."""
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
        """Additive statistics of every row: score, log p, sums of states and of their squares, number; and maxima."""
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

    def vector(self, raw: Raw, markov: Tensor | None) -> Tensor:
        """Whitened parts side by side, about 1 in size each coordinate: (B, size)."""
        parts = []
        if self.settings.vector.fisher != "none":
            unit = self.information.whiten(raw.score)
            parts.append((unit * self.fisher_size**0.5).clamp(-VECTOR_FAR, VECTOR_FAR) if self.projected else unit)
        if self.settings.vector.pooled:
            parts.append(((raw.pooled - self.pooled_mean) / (self.pooled_sd + 1e-3)).clamp(-VECTOR_FAR, VECTOR_FAR))
        if markov is not None:
            parts.append(markov)
        return torch.cat(parts, dim=1)

    @property
    def projected(self) -> bool:
        return self.settings.projection.kind != "none"

    def forward(self, inputs: Inputs, markov: Tensor | None = None) -> Tensor:
        """Embeddings: unit rows (B, dimension)."""
        embedded: Tensor = self.projection(self.vector(self.raw(inputs), markov))
        return embedded

    # ---------------------------------------------------------------- statistics of the corpus

    @torch.no_grad()
    def follow(self, raw: Raw) -> None:
        """Running whitening while the model changes (stop-gradient)."""
        if self.settings.vector.whitening:
            self.information.update(raw.score)
        mean, sd = raw.pooled.mean(0), raw.pooled.std(0, unbiased=False)
        rate = 0.05 if self.pooled_sd.any() else 1.0
        self.pooled_mean.lerp_(mean, rate)
        self.pooled_sd.lerp_(sd, rate)

    @torch.no_grad()
    def fix(self, raw: Raw) -> None:
        """Exact whitening, from the raw vectors of the whole corpus."""
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
    """Some rows of the inputs."""
    return Inputs(*(x[rows] for x in vars(inputs).values()))


def split_blocks(inputs: Inputs, length: int) -> tuple[Inputs, Tensor]:
    """Rows cut into blocks of at most `length` events, and the row that each block came from.

    A row of n events gives ceil(n / length) blocks of like size, whatever the other rows are.
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
        inputs.open_end[owner] & (rank == number[owner] - 1),  # only the last block meets the window's end
    )
    return blocks, owner


def likelihood_per_event(raw: Raw, inputs: Inputs) -> Tensor:
    """Mean negative log-likelihood of an event over the batch."""
    return -(raw.log_likelihood / inputs.lengths.clamp(min=1)).mean()
