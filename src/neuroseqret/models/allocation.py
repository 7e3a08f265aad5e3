"""Limit what a model may build while it is loaded, so that a forged configuration cannot take all memory.

`config.json` names sizes (blocks, width, hidden units), and the network is built from them before its tensors are
filled in. A tampered file could ask for 10^9 blocks. But a network of the file's size needs no more numbers than the
file holds: every tensor that torch is asked for is counted before it is made, and one too many is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

#: A network is built once and may have some buffers that are not saved.
_TIMES, _MORE_TENSORS, _MORE_NUMBERS = 3, 256, 1 << 20
_MAKERS: tuple[Any, ...] = (
    *(torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn, torch.randint, torch.eye),
    *(torch.arange, torch.linspace, torch.logspace, torch.randperm),
)


class OnlyWhatTheFileHolds(TorchFunctionMode):
    """Inside the block, making more or larger tensors than the saved ones allow raises a `ValueError`."""

    def __init__(self, saved: Mapping[str, Tensor]) -> None:
        super().__init__()
        held = sum(tensor.numel() for tensor in saved.values())
        self.tensors = _TIMES * len(saved) + _MORE_TENSORS
        self.numbers = _TIMES * held + _MORE_NUMBERS
        self.held = held

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        options = kwargs or {}
        if func in _MAKERS:
            # On the device "meta" a tensor has a size and no memory.
            counted = {name: value for name, value in options.items() if name not in ("generator", "out")}
            self.tensors -= 1
            self.numbers -= func(*args, **{**counted, "device": "meta"}).numel()
            if self.tensors < 0 or self.numbers < 0:
                raise ValueError(
                    f"the configuration asks for a much larger network than the {self.held:,} saved numbers"
                )
        return func(*args, **options)
