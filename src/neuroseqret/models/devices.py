"""The device that a trained model computes on: the CPU, or a GPU through CUDA or MPS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neuroseqret.errors import UserError

if TYPE_CHECKING:
    import torch

DEVICES = ("cpu", "cuda", "mps")


def usable(device: torch.device | str) -> torch.device:
    """Return the device; raise a `UserError` if there is no such device, or this machine lacks it."""
    import torch

    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise UserError(f"no device is called {str(device)!r}; choose one of {', '.join(DEVICES)}") from error
    lacking = {
        "cuda": lambda: not torch.cuda.is_available(),
        "mps": lambda: not torch.backends.mps.is_available(),
    }
    if found.type in lacking and lacking[found.type]():
        raise UserError(f"torch finds no {found.type!r} device on this machine; choose another device, such as 'cpu'")
    return found
