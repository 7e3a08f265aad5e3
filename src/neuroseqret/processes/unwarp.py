r"""Unwarping of query times: a monotone :math:`U_\phi(t) = \int_0^t u_\phi(\tau) d\tau + \eta`, near the identity.

:math:`u_\phi \ge 0` is a small network of one scalar, so U is one scalar function on [0, 1] (times are divided by the
longest window of the data). It is integrated once on a grid by Simpson's rule and evaluated by cubic Hermite
interpolation, whose slopes at the grid points are u itself. Limited slopes keep the interpolant monotone between grid
points (Fritsch and Carlson). The regulariser :math:`\frac{1}{\sigma^2} \int_0^1 (u_\phi - 1)^2` uses the same grid.
:math:`\eta \sim N(0, \sigma)` is one shift per sequence, in training only; it does not change gaps.

Trained on the likelihood alone, U would collapse, for two reasons. Shrinking all gaps raises their density; leaving out
the factor of the raw gaps prevents this (see `heads`). And gaps near 0 are all alike, so they are easy to predict. So U
learns only in phases where the likelihood is a small part of the loss and the regulariser balances it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

GRID = 256


class Unwarp(nn.Module):
    """U on times in [0, horizon]; beyond the horizon it continues with slope 1."""

    points: Tensor

    def __init__(self, horizon: float = 1.0, hidden: int = 128, sigma: float = 0.1) -> None:
        super().__init__()
        if not 0 < horizon < math.inf:
            raise ValueError(f"the horizon is {horizon}, not a positive number")
        self.horizon, self.sigma = horizon, sigma
        self.net = nn.Sequential(
            nn.Linear(1, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1)
        )
        last = self.net[-1]
        assert isinstance(last, nn.Linear)
        nn.init.normal_(last.weight, std=1e-3)  # starts near the identity: u = 1 everywhere
        nn.init.ones_(last.bias)
        # Grid points and the midpoints between them, which Simpson's rule needs.
        self.register_buffer("points", torch.linspace(0, 1, 2 * GRID + 1)[:, None], persistent=False)

    def rate(self, scaled: Tensor) -> Tensor:
        """Return u at times in [0, 1]: (..., 1) -> (...)."""
        value: Tensor = torch.relu(self.net(2 * scaled - 1))[..., 0]
        return value

    def noise(self, number: int) -> Tensor:
        """Draw eta for `number` sequences, in the unit of time: (number, 1). Its sd is sigma times the horizon."""
        return torch.randn(number, 1) * self.sigma * self.horizon

    def forward(self, times: Tensor) -> Tensor:
        """Return U(times) without noise; times of any shape."""
        # Where and as times are: in double precision, because single would blur short gaps, and so on the CPU.
        u = self.rate(self.points).to(times.device).to(times.dtype)
        steps = (u[:-2:2] + 4 * u[1::2] + u[2::2]) / (6 * GRID)  # Simpson on each cell
        whole = torch.cat([u.new_zeros(1), steps.cumsum(0)])  # U at the grid points
        scaled = times / self.horizon
        inside = scaled.clamp(0, 1)
        cell = (inside * GRID).long().clamp(max=GRID - 1)
        x = inside * GRID - cell
        # Slopes of at most three times the secant make the cubic monotone.
        secant = steps[cell] * GRID
        left = torch.minimum(u[::2][cell], 3 * secant) / GRID
        right = torch.minimum(u[::2][cell + 1], 3 * secant) / GRID
        rise = steps[cell]
        value = whole[cell] + x * (left + x * (3 * rise - 2 * left - right + x * (left + right - 2 * rise)))
        value = value + (scaled - inside)
        return value * self.horizon

    def penalty(self) -> Tensor:
        r"""Return :math:`\frac{1}{\sigma^2} \int_0^1 (u - 1)^2` by Simpson's rule on the same grid."""
        square = (self.rate(self.points) - 1).square()
        return ((square[:-2:2] + 4 * square[1::2] + square[2::2]) / (6 * GRID)).sum() / self.sigma**2
