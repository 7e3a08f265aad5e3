"""A second device on a machine that has only a CPU: its tensors hold numbers, but may not be mixed with the CPU's.

Inside `pretended()`, `tensor.to("meta")` gives a tensor that says it is on that device and computes on hidden memory.
As on a GPU, an operation on tensors of both devices is an error, and so is `numpy()` of such a tensor; numbers without
dimensions may be mixed, and an index may be on the CPU. As on MPS, there are no double-precision numbers unless they
are asked for. A routine that runs here makes its tensors on the right device and copies its results to the CPU, which
is what a machine without a GPU can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("meta")
_aten = torch.ops.aten
#: Operations that copy between devices.
_COPIES = {_aten.copy_.default, _aten._to_copy.default}
#: Operations whose second argument, a list of indices, may be on the CPU.
_INDEXED = {_aten.index.Tensor, _aten.index_put_.default, _aten._index_put_impl_.default, _aten.index_put.default}


class PretendTensor(Tensor):
    """A tensor that says it is on `DEVICE`; `held` has its numbers."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> PretendTensor:
        made: PretendTensor = Tensor._make_wrapper_subclass(
            cls, held.size(), dtype=held.dtype, device=DEVICE, dispatch_sizes_strides_policy="sizes"
        )
        made.held = held
        return made

    double_precision = False  # whether the device has it

    def __repr__(self, **_: Any) -> str:
        return f"PretendTensor({self.held!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})

    def numpy(self, **_: Any) -> Any:
        raise TypeError("a tensor of another device has no numpy array; copy it to the CPU first")


def compute(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run one operation on the hidden memory; raise if it mixes devices."""
    device = kwargs.get("device")
    given = [x for x in tree_flatten((args, kwargs))[0] if isinstance(x, Tensor)]
    pretended = [x for x in given if isinstance(x, PretendTensor)]
    if not pretended and device != DEVICE:
        return func(*args, **kwargs)
    if func not in _COPIES:
        of_both = tree_flatten((args[0], args[2:], kwargs) if func in _INDEXED else (args, kwargs))[0]
        plain = [x for x in of_both if isinstance(x, Tensor) and not isinstance(x, PretendTensor) and x.dim()]
        if pretended and plain:
            raise RuntimeError(f"{func}: tensors of two devices, {DEVICE} and {plain[0].device}")
    inner = dict(kwargs)
    leaves = device is not None and device != DEVICE
    if device is not None:
        inner["device"] = torch.device("cpu")
    found = func(*_held(args), **_held(inner))
    if func._schema.name.endswith("_"):  # in place
        return args[0]
    return found if leaves else tree_map_only(Tensor, _pretending, found)


def _pretending(found: Tensor) -> PretendTensor:
    if found.dtype == torch.float64 and not PretendTensor.double_precision:
        raise TypeError("this device has no double-precision numbers")
    return PretendTensor(found)


def _held(values: Any) -> Any:
    return tree_map_only(PretendTensor, lambda x: x.held, values)


class _Mode(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return compute(func, args, kwargs or {})


@contextmanager
def pretended(double_precision: bool = False) -> Iterator[torch.device]:
    """Inside the block there is the second device that it gives; fused optimisers do not know it."""

    class AdamW(torch.optim.AdamW):
        def __init__(self, *given: Any, fused: bool, **more: Any) -> None:
            super().__init__(*given, foreach=False, **more)

    with (
        mock.patch.object(PretendTensor, "double_precision", double_precision),
        mock.patch.object(torch.optim, "AdamW", AdamW),
        _Mode(),
    ):
        yield DEVICE
