r"""Training on several processes: `torchrun --nproc-per-node N -m neuroseqret fit ...`.

Every process (rank) draws the same batch and computes the vectors of its share of the rows. The vectors are gathered,
and every rank computes the loss of the whole batch from them, so that candidates of all ranks are negatives of each
other. With n ranks, the gradient is the mean over the ranks of

.. math:: g_r = \frac{\partial L}{\partial \theta}\Big|_{\text{after}}
          + n \sum_{i \in \text{share } r} \frac{\partial L}{\partial v_i} \frac{\partial v_i}{\partial \theta},

where the first term is that of parameters that are used after gathering. The mean is the gradient of one process with
the same batch; only the random numbers of dropout differ. Clocks are read by the first rank, so that all ranks agree on
when a budget is spent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from neuroseqret.data.sequences import IntArray
from neuroseqret.training import budget

T = TypeVar("T")
_FEWEST = 16  # rows per rank: fewer are not worth sharing


@contextmanager
def started() -> Iterator[None]:
    """Join the other processes of `torchrun` in this block; nothing if there are none."""
    import torch.distributed as dist

    if not (dist.is_available() and dist.is_torchelastic_launched()):
        yield
        return
    dist.init_process_group("gloo")
    try:
        with budget.counted_by(lambda: of_first(time.monotonic())):
            yield
        dist.barrier()
    finally:
        dist.destroy_process_group()


def number() -> int:
    """Return how many processes train together; 1 without torchrun."""
    dist = torch.distributed
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def own() -> int:
    """Return the number of this process, from 0."""
    return torch.distributed.get_rank() if number() > 1 else 0


def is_first() -> bool:
    """Return whether this process is the one that writes and reports."""
    return own() == 0


def share(rows: int, rank: int | None = None) -> slice:
    """Return the rows that a rank computes, of so many."""
    rank, ranks = own() if rank is None else rank, number()
    return slice(rows * rank // ranks, rows * (rank + 1) // ranks)


def of_first(value: T) -> T:
    """Return the value of the first rank, on all of them."""
    if number() == 1:
        return value
    found = [value]
    torch.distributed.broadcast_object_list(found, src=0)
    return found[0]


def gathered(part: Tensor, rows: int) -> Tensor:
    """Return the rows of all ranks, of which `part` is this rank's share; gradients flow back to the share."""
    if number() == 1:
        return part
    found: Tensor = _Gathered.apply(part, rows)
    return found


def shared(compute: Callable[[IntArray], Tensor], rows: IntArray) -> Tensor:
    """Return `compute(rows)`, of which every rank computes a share, with random numbers of its own."""
    if len(rows) < number() or number() == 1:
        return compute(rows)
    with own_randomness():
        part = compute(rows[share(len(rows))])
    return gathered(part, len(rows))


@torch.no_grad()
def in_shares(compute: Callable[[slice], Tensor | None], rows: int) -> Tensor | None:
    """Return `compute(slice(0, rows))` where every row depends on itself alone; every rank computes a share."""
    if number() == 1 or rows < _FEWEST * number():
        return compute(slice(0, rows))
    part = compute(share(rows))
    return None if part is None else gathered(part, rows)


@contextmanager
def own_randomness() -> Iterator[None]:
    """Draw other random numbers than the other ranks in this block, and the same as they do after it."""
    if number() == 1:
        yield
        return
    seed = int(torch.randint(2**62, (1,)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + own())
        yield


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Replace the gradients of every rank by their mean."""
    if number() == 1:
        return
    every = [p for p in parameters if p.requires_grad]
    flat = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in every])
    torch.distributed.all_reduce(flat)
    flat /= number()
    for parameter, mean in zip(every, flat.split([p.numel() for p in every]), strict=True):
        parameter.grad = mean.view_as(parameter).clone()


def same_state(module: nn.Module, optimizer: torch.optim.Optimizer, state: T) -> T:
    """Give all ranks the module, the optimiser and the state of the first one."""
    if number() == 1:
        return state
    weights, steps, state = of_first((module.state_dict(), optimizer.state_dict(), state))
    module.load_state_dict(weights)
    optimizer.load_state_dict(steps)
    return state


class _Gathered(torch.autograd.Function):
    """Concatenates the shares of all ranks; see `gathered`."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, rows: int) -> Tensor:
        ctx.rows = rows
        shares = [share(rows, rank) for rank in range(number())]
        most = max(s.stop - s.start for s in shares)
        padded = part.new_zeros(most, *part.shape[1:])
        padded[: len(part)] = part
        found = [torch.empty_like(padded) for _ in shares]
        torch.distributed.all_gather(found, padded)
        return torch.cat([one[: s.stop - s.start] for one, s in zip(found, shares, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient[share(ctx.rows)] * number(), None
