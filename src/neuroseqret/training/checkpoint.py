"""The state of a training phase, and the checkpoint folder that keeps it: one file per phase."""

from __future__ import annotations

import json
import math
import statistics
import time
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from neuroseqret.errors import DivergenceError, UserError
from neuroseqret.storage.files import new_file
from neuroseqret.training.log import TrainingLog

Weights = dict[str, Tensor]

_RECENT = 9  # losses that are compared by their median: a few extreme batches, or first steps, are not a divergence


@dataclass
class LoopState:
    """What the loop carries from step to step, besides module and optimiser."""

    step: int = 0
    seconds: float = 0.0
    best: float | None = None
    best_weights: Weights | None = None
    waited: int = 0  # evaluations since the best one
    drops: int = 0  # of the learning rate
    finished: bool = False
    smooth: float | None = None  # running mean of the loss
    lowest: float | None = None  # lowest median of the latest losses so far
    recent: list[float] = field(default_factory=list)  # the latest losses

    def judge(self, value: float, module: nn.Module) -> None:
        """Keep the module's weights if the validation value is the best so far."""
        if self.best is None or value > self.best:
            self.best, self.waited = value, 0
            self.best_weights = {k: v.detach().clone() for k, v in module.state_dict().items()}
        else:
            self.waited += 1

    def drop(self, module: nn.Module) -> None:
        """Go back to the best weights; the loop lowers the rate with the number of drops."""
        if self.best_weights is not None:
            module.load_state_dict(self.best_weights)
        self.drops, self.waited = self.drops + 1, 0

    def check(self, loss: float, norm: float, phase: str, rate: float) -> None:
        """Raise a `DivergenceError` if the run cannot recover."""
        advice = (
            "look for extreme times in the data ('neuroseqret data info'), or set a lower learning rate in Python "
            f"(now {rate:g})"
        )
        place = f"training diverged in phase {phase!r} at step {self.step}"
        if not math.isfinite(loss) or not math.isfinite(norm):
            raise DivergenceError(f"{place}: loss {loss:g}, gradient norm {norm:g}; {advice}")
        self.smooth = loss if self.smooth is None else 0.9 * self.smooth + 0.1 * loss
        self.recent = [*self.recent, loss][-_RECENT:]
        if len(self.recent) < _RECENT:
            return
        middle = statistics.median(self.recent)
        self.lowest = middle if self.lowest is None else min(self.lowest, middle)
        if min(self.smooth, middle) > self.lowest + 50 * (1 + abs(self.lowest)):
            raise DivergenceError(f"{place}: the loss rose from {self.lowest:.3g} to {self.smooth:.3g}; {advice}")


class Checkpoint:
    """A folder with the state of every phase; `key` identifies the run (settings, seed, data)."""

    def __init__(self, folder: str | PathLike[str], key: str, every_seconds: float = 30.0) -> None:
        self.folder, self.key, self.every = Path(folder), key, every_seconds
        self._saved = time.monotonic()

    def resume(self, phase: str, module: nn.Module, optimizer: torch.optim.Optimizer, log: TrainingLog) -> LoopState:
        """Load the saved state of a phase into module, optimiser and log, or return a fresh state if there is none."""
        path = self._path(phase)
        try:
            if not path.exists():
                return LoopState()
            with safe_open(path, "pt") as file:
                meta = json.loads(file.metadata()["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise UserError(f"{path}: damaged checkpoint ({error}); delete the folder to start again") from error
        if meta.pop("key") != self.key:
            raise UserError(
                f"{self.folder}: checkpoint of another run (data, settings or seed differ); delete the folder or name "
                "another one"
            )
        module.load_state_dict(_part(tensors, "module"))
        _restore(optimizer, tensors)
        log.records[:] = meta.pop("log")
        state = LoopState(**meta)
        state.best_weights = _part(tensors, "best") or None
        return state

    def maybe_save(
        self, phase: str, state: LoopState, module: nn.Module, optimizer: torch.optim.Optimizer, log: TrainingLog
    ) -> None:
        """Save if the last save was at least `every_seconds` ago."""
        if time.monotonic() - self._saved >= self.every:
            self.save(phase, state, module, optimizer, log)

    def save(
        self, phase: str, state: LoopState, module: nn.Module, optimizer: torch.optim.Optimizer, log: TrainingLog
    ) -> None:
        """Write the state of a phase; a crash at any moment leaves either the old file or the new one."""
        tensors = {f"module/{k}": v for k, v in module.state_dict().items()}
        tensors |= {f"best/{k}": v for k, v in (state.best_weights or {}).items()}
        for index, group in optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer/{index}/{k}": torch.as_tensor(v) for k, v in group.items()}
        plain = ("step", "seconds", "best", "waited", "drops", "finished", "smooth", "lowest", "recent")
        meta = {"key": self.key, "log": log.records, **{k: getattr(state, k) for k in plain}}
        kept = {k: v.detach().contiguous().clone() for k, v in tensors.items()}
        with new_file(self._path(phase)) as temporary:
            # Written here, so that a full disk is a system error, which `new_file` explains.
            temporary.write_bytes(save(kept, metadata={"state": json.dumps(meta)}))
        self._saved = time.monotonic()

    def _path(self, phase: str) -> Path:
        return self.folder / f"{phase}.safetensors"


def _part(tensors: Weights, name: str) -> Weights:
    return {k.split("/", 1)[1]: v for k, v in tensors.items() if k.startswith(f"{name}/")}


def _restore(optimizer: torch.optim.Optimizer, tensors: Weights) -> None:
    state: dict[int, Weights] = {}
    for key, value in _part(tensors, "optimizer").items():
        index, name = key.split("/")
        state.setdefault(int(index), {})[name] = value
    if state:
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
