"""Split the vector of a sequence over its events: how much each event gives to every coordinate.

- Fisher vector: exact, because the gradient of a log-likelihood is a sum over events.
- Convolution bank: an output of a kernel belongs to the events under its taps (see `ConvolutionBank.event_shares`).
- Markov-renewal features and tables of values: the value of a table cell is shared equally by the events counted in it.
  Moments of the whole sequence belong to the sequence as a whole.
- Pooled states: mean and standard deviation are sums over events; a maximum belongs to the event that attains it.

The mean over the corpus, which is subtracted from features and pooled states, is shared equally by all events. So an
event gets what it has more than the average event: what all sequences have in common does not explain a match.
"""

from __future__ import annotations

import torch
from torch import Tensor

from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.models.base import Role
from neuroseqret.models.fixed_features import BANK_SCALE
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.network import VECTOR_FAR, split_blocks
from neuroseqret.processes import fisher
from neuroseqret.processes.features import BOTH, MARKS, TIMES, WHOLE
from neuroseqret.processes.time_scale import Inputs

MOST_EVENTS = 2000


def vector_shares(model: SelfAttention, sequence: EventSequence, role: Role) -> tuple[Tensor, Tensor]:
    """Return shares (events + 1, size) that sum to the sequence's vector, and the kind of each coordinate (size,).

    The last row of the shares belongs to the sequence as a whole. Kinds are indices of `features.PARTS`.
    """
    if len(sequence) > MOST_EVENTS:
        raise UserError(
            f"sequence {sequence.id}: {len(sequence):,} events are too many to explain pair by pair; "
            f"cut it into windows of at most {MOST_EVENTS:,} events"
        )
    network, settings = model.network, model.settings.vector
    one = EventSequences.of(sequence)
    shares, kinds = [], []
    bank = [] if model.bank is None else [(model.bank, BANK_SCALE)]
    for features, scale in (*bank, *((tables, 1.0) for tables in model.fixed.tables())):
        of_events, whole, kind = (torch.from_numpy(part) for part in features.event_shares(one))
        kinds.append(kind)
        of_whole = whole * (kind == WHOLE)
        shares.append(scale * _over_events(of_events, whole - of_whole, of_whole))
    if settings.neural:
        inputs = network.process.seen(model.inputs(one, role=role))
        blocks, _ = split_blocks(inputs, model.settings.encoder.max_length)
        states = network.process.encoder(blocks)
        if settings.fisher != "none":
            shares.append(_fisher(model, blocks, states))
            of_outputs = torch.tensor([TIMES, TIMES, *[MARKS] * network.process.heads.marks])
            kinds.append(of_outputs.repeat_interleave(states.shape[2] + 1))
        if settings.pooled:
            shares.append(_pooled(model, states[:, 1:][blocks.mask].double()))
            kinds.append(torch.full((shares[-1].shape[1],), BOTH))
    return torch.cat(shares, dim=1), torch.cat(kinds)


def _fisher(model: SelfAttention, blocks: Inputs, states: Tensor) -> Tensor:
    network = model.network
    given = fisher.contributions(network.process.heads, blocks, states, network.process.survival).double()
    of_events = given[:, :-1][blocks.mask]  # state i predicts event i
    shares = torch.cat(
        [of_events, (given.sum((0, 1)) - of_events.sum(0))[None]]
    )  # survival until the window's end belongs to the whole
    white = network.information.scale().double()
    shares = shares * white
    shares = shares / shares.sum(0).norm().clamp(min=1e-12)
    return _clipped(shares * network.fisher_size**0.5) if network.projected else shares


def _pooled(model: SelfAttention, states: Tensor) -> Tensor:
    network, number = model.network, len(states)
    mean = states.mean(0)
    sd = states.square().mean(0).sub(mean.square()).clamp(min=1e-6).sqrt()
    highest = torch.zeros_like(states).scatter_(0, states.argmax(0, keepdim=True), states.amax(0, keepdim=True))
    spread = (states - mean).square() / number / sd
    of_events = torch.cat([states / number, spread, highest], dim=1)
    of_all = torch.cat([mean * 0, sd - spread.sum(0), mean * 0]) - network.pooled_mean.double()
    return _clipped(_over_events(of_events, of_all, torch.zeros_like(of_all)) / (network.pooled_sd.double() + 1e-3))


def _over_events(of_events: Tensor, of_all: Tensor, of_whole: Tensor) -> Tensor:
    """Return shares (events + 1, size): `of_all` is divided equally among the events, `of_whole` is the last row."""
    return torch.cat([of_events + of_all / len(of_events), of_whole[None]])


def _clipped(shares: Tensor) -> Tensor:
    """Shrink the shares of coordinates that the model clips, so that they sum to the clipped value."""
    total = shares.sum(0)
    kept = total.clamp(-VECTOR_FAR, VECTOR_FAR)
    return shares * torch.where(total.abs() > VECTOR_FAR, kept / total, torch.ones_like(total))
