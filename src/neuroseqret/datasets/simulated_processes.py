"""The marked point processes behind `simulate`: sampled exactly, many sequences at once.

- `Hawkes`: self-exciting, so that events come in bursts;
- `SelfCorrecting`: events space out;
- `Renewal`: independent gaps.

`random_process` draws the parameters of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gamma, log
from typing import Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import FloatArray, IntArray
from neuroseqret.errors import UserError

Family = Literal["gamma", "log-normal", "weibull"]


class Events(NamedTuple):
    """Realisations one after the other: sequence i owns `times[offsets[i]:offsets[i + 1]]`."""

    times: FloatArray
    marks: npt.NDArray[np.int32]
    offsets: IntArray


class Process(Protocol):
    """A process that can be sampled."""

    def sample(self, number: int, horizon: float, rng: np.random.Generator) -> Events:
        """Draw `number` independent realisations on [0, horizon), each from an empty past."""


@dataclass(frozen=True, eq=False)
class Hawkes:
    r"""Self-exciting: every event raises the intensity for a while, so that events come in bursts.

    $\lambda_k(t) = \mu_k + \sum_{t_i < t} n_{x_i k}\, \beta e^{-\beta (t - t_i)}$, with `base` $\mu$ (K,),
    `branching` $n$ (K, K), where $n_{jk}$ is the mean number of children with mark k of an event with mark j, and
    `decay` $\beta$. The long-run rates of the marks are $\Lambda = (I - n^\top)^{-1} \mu$.
    """

    base: FloatArray
    branching: FloatArray
    decay: float

    def __post_init__(self) -> None:
        radius = float(np.abs(np.linalg.eigvals(self.branching)).max())
        if radius >= 1 or self.decay <= 0 or np.min(self.base) < 0 or np.min(self.branching) < 0:
            raise UserError(
                f"a Hawkes process needs a branching matrix of spectral radius below 1 (it is {radius:.3g}), "
                "a positive decay and no negative rates"
            )

    @property
    def rates(self) -> FloatArray:
        """Long-run rate of every mark: (K,)."""
        return np.linalg.solve(np.eye(len(self.base)) - self.branching.T, self.base)

    @property
    def rate(self) -> float:
        """Long-run rate of all marks together."""
        return float(self.rates.sum())

    def sample(self, number: int, horizon: float, rng: np.random.Generator) -> Events:
        """Sample by the branching structure: immigrants at the base rate, then generation by generation."""
        row, mark = _repeated(rng.poisson(self.base * horizon, (number, len(self.base))))
        time = rng.random(len(row)) * horizon
        generations = [(row, time, mark)]
        while len(row):
            parent, mark = _repeated(rng.poisson(self.branching[mark]))
            row, time = row[parent], time[parent] + rng.exponential(1 / self.decay, len(parent))
            inside = time < horizon
            row, time, mark = row[inside], time[inside], mark[inside]
            generations.append((row, time, mark))
        row, time, mark = (np.concatenate(parts) for parts in zip(*generations, strict=True))
        order = np.lexsort((time, row))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=number))])
        return Events(time[order], mark[order].astype(np.int32), offsets)


@dataclass(frozen=True, eq=False)
class SelfCorrecting:
    r"""Self-correcting: the intensity climbs and every event pushes it down, so that events space out.

    $\lambda(t) = e^{\mu t - \alpha N(t)}$ with `drift` $\mu$ and `drop` $\alpha$; the long-run rate is
    $\mu / \alpha$. Marks are a Markov chain with matrix `transition` (K, K).
    """

    drift: float
    drop: float
    transition: FloatArray

    def sample(self, number: int, horizon: float, rng: np.random.Generator) -> Events:
        r"""Sample by inversion: at log intensity $y$ the gap is $\log(1 + \mu E e^{-y}) / \mu$, $E \sim Exp(1)$."""
        level, time, columns = np.zeros(number), np.zeros(number), []
        while (time < horizon).any():
            gap = np.logaddexp(0, np.log(self.drift * rng.exponential(size=number)) - level) / self.drift
            level, time = level + self.drift * gap - self.drop, time + gap
            columns.append(time)
        times = np.stack(columns, 1) if columns else np.zeros((number, 0))
        return _within(times, _markov_chain(self.transition, times.shape, rng), horizon)


@dataclass(frozen=True, eq=False)
class Renewal:
    """Independent gaps between events; marks are a Markov chain with matrix `transition` (K, K).

    The gap before an event with mark k has the mean `means[k]` and a distribution of the given `family`. `shape` is the
    shape parameter of gamma and Weibull, and sigma of the log-normal.
    """

    family: Family
    means: FloatArray
    shape: float
    transition: FloatArray

    @property
    def rate(self) -> float:
        """Long-run rate: one over the mean gap under the chain's stationary distribution."""
        return float(1 / (stationary(self.transition) @ self.means))

    def unit_gaps(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Draw gaps of mean 1."""
        if self.family == "gamma":
            return rng.gamma(self.shape, 1 / self.shape, size)
        if self.family == "log-normal":
            return rng.lognormal(-(self.shape**2) / 2, self.shape, size)
        return rng.weibull(self.shape, size) / gamma(1 + 1 / self.shape)

    def sample(self, number: int, horizon: float, rng: np.random.Generator) -> Events:
        """Draw gaps and marks of all sequences at once, and as many again until all reach the horizon."""
        length = int(1.3 * self.rate * horizon) + 8
        marks = _markov_chain(self.transition, (number, length), rng)
        times = np.cumsum(self.unit_gaps(marks.shape, rng) * self.means[marks], axis=1)
        while (times[:, -1] < horizon).any():
            more = _markov_chain(self.transition, (number, length), rng, marks[:, -1])
            gaps = self.unit_gaps(more.shape, rng) * self.means[more]
            times = np.concatenate([times, times[:, -1:] + np.cumsum(gaps, axis=1)], axis=1)
            marks = np.concatenate([marks, more], axis=1)
            length = times.shape[1]
        return _within(times, marks, horizon)


KINDS = ("hawkes", "self-correcting", "renewal")


def random_process(kind: str, num_marks: int, rate: float, rng: np.random.Generator) -> Process:
    """Return a process of the given kind with random parameters and the given long-run rate."""
    transition = rng.dirichlet(np.full(num_marks, 0.7), num_marks)
    if kind == "hawkes":
        branching = rng.gamma(0.5, 1, (num_marks, num_marks))
        branching *= rng.uniform(0.4, 0.8) / np.abs(np.linalg.eigvals(branching)).max()
        base = rng.dirichlet(np.full(num_marks, 1.0))
        unscaled = Hawkes(base, branching, 1.0).rate
        return Hawkes(base * rate / unscaled, branching, rate * np.exp(rng.uniform(log(0.5), log(8))))
    if kind == "self-correcting":
        drop = np.exp(rng.uniform(log(0.2), log(2.0)))
        return SelfCorrecting(rate * drop, drop, transition)
    if kind == "renewal":
        family: Family = ("gamma", "log-normal", "weibull")[rng.integers(3)]
        shape = float(rng.uniform(0.4, 1.2) if family == "log-normal" else rng.uniform(0.7, 4.0))
        means = rng.lognormal(0, 0.5, num_marks)
        means *= 1 / (rate * (stationary(transition) @ means))
        return Renewal(family, means, shape, transition)
    raise UserError(f"there is no process {kind!r}; choose from {', '.join(KINDS)}")


def stationary(transition: FloatArray) -> FloatArray:
    """Return the stationary distribution pi = pi P of a Markov chain that has one: (K,)."""
    size = len(transition)
    equations = np.concatenate([transition.T - np.eye(size), np.ones((1, size))])
    return np.clip(np.linalg.lstsq(equations, np.eye(size + 1)[-1], rcond=None)[0], 0, None)


def _markov_chain(
    transition: FloatArray, shape: tuple[int, ...], rng: np.random.Generator, previous: IntArray | None = None
) -> IntArray:
    """Draw chains side by side: (number, length), from the stationary distribution or one step after `previous`."""
    number, length = shape
    steps, first = np.cumsum(transition, axis=1), np.cumsum(stationary(transition))
    draws = rng.random((length, number, 1))
    marks = np.empty((number, length), np.int64)
    for place in range(length):
        bounds = first if previous is None else steps[previous]
        # The last bound is left out, so that rounding never yields a mark beyond the last.
        previous = (draws[place] >= bounds[..., :-1]).sum(axis=-1)
        marks[:, place] = previous
    return marks


def _repeated(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Return row and column of every unit in a (rows, columns) table of counts, row by row."""
    flat = np.repeat(np.arange(counts.size), counts.ravel())
    return flat // counts.shape[1], flat % counts.shape[1]


def _within(times: FloatArray, marks: IntArray, horizon: float) -> Events:
    """Return the events before the horizon, flat."""
    inside = times < horizon
    offsets = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return Events(times[inside], marks[inside].astype(np.int32), offsets)
