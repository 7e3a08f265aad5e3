"""The training loop that every trained method uses, models and baselines.

    history = TrainingLog()
    train(module, lambda step: loss_of(sampler.batch(step)), LoopSettings(steps=400), validate=map_on_validation,
          seed=0, phase="joint", log=history)

The caller gives `loss(step)`, the loss of one step. The loop does the rest: AdamW, warm-up and cosine schedule,
gradient clipping, the wall-clock budget, early stopping on the best weights, checks for divergence, checkpoints, log
and progress; with several processes, the mean of their gradients (see `ranks`). Before each step the random generator
is seeded with (seed, phase, step). So the same seed gives the same weights, and a resumed run gives the same weights as
one that was never interrupted.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from neuroseqret.training import budget, ranks
from neuroseqret.training.checkpoint import Checkpoint, LoopState
from neuroseqret.training.log import TrainingLog
from neuroseqret.training.loop_settings import LoopSettings
from neuroseqret.training.progress import Following, ProgressDisplay

__all__ = ["LoopSettings", "TrainingResult", "train"]

DROP = 3.0  # the learning rate is divided by this at a drop


@dataclass
class TrainingResult:
    """The result of a phase."""

    steps: int
    seconds: float
    best: float | None  # validation value of the weights that were kept


def train(
    module: nn.Module,
    loss: Callable[[int], Tensor],
    settings: LoopSettings,
    *,
    seed: int = 0,
    phase: str = "train",
    validate: Callable[[], float] | None = None,
    log: TrainingLog | None = None,
    checkpoint: Checkpoint | None = None,
    following: Following | None = Following(),
) -> TrainingResult:
    """Minimise `loss` over the trainable parameters of the module; leave it with the best weights, in eval mode.

    `validate` returns a value where higher is better. Without it the last weights are kept. A phase without a number of
    steps needs something to end it: without `validate`, the running mean of the loss. `following` is what comes after
    the phase, so that the progress can tell how long the training takes; None if that is not known.
    """
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True)
    log = log if log is not None else TrainingLog()
    checkpoint = checkpoint if ranks.is_first() else None
    state = checkpoint.resume(phase, module, optimizer, log) if checkpoint else LoopState()
    state = ranks.same_state(module, optimizer, state)
    steps = math.inf if settings.steps is None else settings.steps
    due = _due(settings)
    begun = budget.now() - state.seconds
    salt = zlib.crc32(phase.encode())
    with torch.random.fork_rng(devices=[]), ProgressDisplay(phase, steps, settings.max_seconds, following) as display:
        module.train()
        display.resume(state.step)
        while not state.finished and state.step < steps:
            # The time of the last step and not of now, or the budget could end after a step that was not the last.
            used = 0.0 if settings.max_seconds is None else state.seconds / settings.max_seconds
            done = max(state.step / steps, used)
            if done >= 1:
                break
            torch.manual_seed((seed * 1_000_003 + salt + state.step * 7_919) % (2**63))
            rate = settings.learning_rate / DROP**state.drops
            if settings.steps is not None:
                rate *= schedule(done, settings.warmup)
            for group in optimizer.param_groups:
                group["lr"] = rate
            value = loss(state.step)
            optimizer.zero_grad(set_to_none=True)
            value.backward()
            ranks.average_gradients(parameters)
            norm = nn.utils.clip_grad_norm_(parameters, settings.clip)
            optimizer.step()
            state.step += 1
            number, size = value.item(), float(norm)
            state.check(number, size, phase, settings.learning_rate)
            state.seconds = budget.now() - begun
            record = {"phase": phase, "step": state.step, "loss": number, "rate": rate, "seconds": state.seconds}
            last = state.step == steps or (settings.max_seconds or math.inf) <= state.seconds
            if validate is not None and (due(state.step) or last):
                module.eval()
                record["validation"] = found = ranks.of_first(float(validate()))
                module.train()
                state.judge(found, module)
            elif settings.steps is None and state.smooth is not None and due(state.step):
                state.judge(ranks.of_first(-state.smooth), module)
            if settings.patience and state.waited >= settings.patience:
                if state.drops < settings.drops:
                    state.drop(module)
                else:
                    state.finished = True
            log.add(record)
            display.show(state.step, number, state.best, state.seconds)
            if checkpoint:
                checkpoint.maybe_save(phase, state, module, optimizer, log)
        state.finished = True
        if state.best_weights is not None:
            module.load_state_dict(state.best_weights)
        ranks.same_state(module, optimizer, None)
    if checkpoint:
        checkpoint.save(phase, state, module, optimizer, log)
    module.eval()
    return TrainingResult(state.step, state.seconds, state.best)


def _due(settings: LoopSettings) -> Callable[[int], bool]:
    """Return which steps are followed by a validation."""
    if settings.steps is None:
        return lambda step: step % settings.every == 0
    among = {max(1, round(settings.steps * (k + 1) / settings.evaluations)) for k in range(settings.evaluations)}
    return among.__contains__


def schedule(done: float, warmup: float) -> float:
    """Return the factor on the learning rate after a share `done` of the phase: linear rise, then half a cosine to 0.

    >>> [round(schedule(x, 0.2), 3) for x in (0.1, 0.2, 0.6, 1.0)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if done < warmup:
        return max(done / warmup, 1e-3)
    return 0.5 * (1 + math.cos(math.pi * min((done - warmup) / max(1 - warmup, 1e-9), 1.0)))
