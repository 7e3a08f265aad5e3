r"""Marked point processes that can be sampled exactly, many sequences at once.

Every process has `num_marks`, `rate` (events per unit of time in the long run) and
`sample(number, horizon, rng)`: `number` independent realisations on [0, horizon), where horizon is one number or
one a sequence, from an empty past.
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
    """Realisations side by side: sequence i owns `times[offsets[i]:offsets[i + 1]]`."""

    times: FloatArray
    marks: npt.NDArray[np.int32]
    offsets: IntArray


class Process(Protocol):
    @property
    def num_marks(self) -> int: ...

    @property
    def rate(self) -> float: ...

    def sample(self, number: int, horizon: float | FloatArray, rng: np.random.Generator) -> Events: ...


@dataclass(frozen=True, eq=False)
class Hawkes:
    r"""Self-exciting: every event raises the intensity for a while.

    $\lambda_k(t) = \mu_k + \sum_{t_i < t} n_{x_i k}\, \beta e^{-\beta (t - t_i)}$, with `base` $\mu$ (K,),
    `branching` $n$ (K, K), the mean number of children of mark k of an event of mark j, and `decay` $\beta$.
    In the long run mark k has the rate $\Lambda_k$, $\Lambda = (I - n^\top)^{-1} \mu$.
    """

    base: FloatArray
    branching: FloatArray
    decay: float

    def __post_init__(self) -> None:
        radius = float(np.abs(np.linalg.eigvals(self.branching)).max())
        if radius >= 1 or self.decay <= 0 or np.min(self.base) < 0 or np.min(self.branching) < 0:
            raise UserError(f"a Hawkes process needs a branching matrix of radius below 1 (it is {radius:.3g})")

    @property
    def num_marks(self) -> int:
        return len(self.base)

    @property
    def rates(self) -> FloatArray:
        """Long-run rate of every mark: (K,)."""
        return np.linalg.solve(np.eye(self.num_marks) - self.branching.T, self.base)

    @property
    def rate(self) -> float:
        return float(self.rates.sum())

    def sample(self, number: int, horizon: float | FloatArray, rng: np.random.Generator) -> Events:
        """By the branching structure: immigrants at the base rate, then their children, generation by generation."""
        until = np.broadcast_to(np.asarray(horizon, dtype=np.float64), (number,))
        row, mark = _repeated(rng.poisson(self.base * until[:, None]))
        time = rng.random(len(row)) * until[row]
        generations = [(row, time, mark)]
        while len(row):
            parent, mark = _repeated(rng.poisson(self.branching[mark]))
            row, time = row[parent], time[parent] + rng.exponential(1 / self.decay, len(parent))
            inside = time < until[row]
            row, time, mark = row[inside], time[inside], mark[inside]
            generations.append((row, time, mark))
        row, time, mark = (np.concatenate(parts) for parts in zip(*generations, strict=True))
        order = np.lexsort((time, row))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=number))])
        return Events(time[order], mark[order].astype(np.int32), offsets)


@dataclass(frozen=True, eq=False)
class SelfCorrecting:
    r"""Self-correcting: the intensity climbs and every event throws it back, so that events space out.

    $\lambda(t) = e^{\mu t - \alpha N(t)}$ with `drift` $\mu$ and `drop` $\alpha$; the long-run rate is
    $\mu / \alpha$. Marks are a Markov chain with matrix `transition` (K, K).
    """

    drift: float
    drop: float
    transition: FloatArray

    @property
    def num_marks(self) -> int:
        return len(self.transition)

    @property
    def rate(self) -> float:
        return self.drift / self.drop

    def sample(self, number: int, horizon: float | FloatArray, rng: np.random.Generator) -> Events:
        r"""By inversion: at log intensity $y$ the next gap is $\log(1 + \mu E e^{-y}) / \mu$, $E \sim Exp(1)$."""
        until = np.broadcast_to(np.asarray(horizon, dtype=np.float64), (number,))
        level, time, columns = np.zeros(number), np.zeros(number), []
        while (time < until).any():
            gap = np.logaddexp(0, np.log(self.drift * rng.exponential(size=number)) - level) / self.drift
            level, time = level + self.drift * gap - self.drop, time + gap
            columns.append(time)
        times = np.stack(columns, 1) if columns else np.zeros((number, 0))
        return _within(times, _markov_chain(self.transition, times.shape, rng), until)


@dataclass(frozen=True, eq=False)
class Renewal:
    """Independent gaps between events; marks are a Markov chain with matrix `transition` (K, K).

    The gap before an event of mark k has the mean `means[k]` and is of a `family` with the given `shape`: k of gamma
    and Weibull, sigma of the log-normal. The long-run rate is one over the mean gap under the chain's stationary
    distribution.
    """

    family: Family
    means: FloatArray
    shape: float
    transition: FloatArray

    @property
    def num_marks(self) -> int:
        return len(self.transition)

    @property
    def rate(self) -> float:
        return float(1 / (stationary(self.transition) @ self.means))

    def unit_gaps(self, size: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
        """Gaps of mean 1."""
        if self.family == "gamma":
            return rng.gamma(self.shape, 1 / self.shape, size)
        if self.family == "log-normal":
            return rng.lognormal(-(self.shape**2) / 2, self.shape, size)
        return rng.weibull(self.shape, size) / gamma(1 + 1 / self.shape)

    def sample(self, number: int, horizon: float | FloatArray, rng: np.random.Generator) -> Events:
        """Gaps and marks for all sequences at once, twice as many until all reach their horizon."""
        until = np.broadcast_to(np.asarray(horizon, dtype=np.float64), (number,))
        length = int(1.3 * self.rate * until.max(initial=0.0)) + 8
        marks = _markov_chain(self.transition, (number, length), rng)
        times = np.cumsum(self.unit_gaps(marks.shape, rng) * self.means[marks], axis=1)
        while (times[:, -1] < until).any():
            more = _markov_chain(self.transition, (number, length), rng, marks[:, -1])
            gaps = self.unit_gaps(more.shape, rng) * self.means[more]
            times = np.concatenate([times, times[:, -1:] + np.cumsum(gaps, axis=1)], axis=1)
            marks = np.concatenate([marks, more], axis=1)
            length = times.shape[1]
        return _within(times, marks, until)


KINDS = ("hawkes", "self-correcting", "renewal")


def random_process(kind: str, num_marks: int, rate: float, rng: np.random.Generator) -> Process:
    """A process of a kind with random parameters and the given long-run rate: what makes one class of sequences."""
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
    raise UserError(f"no process is called {kind!r}; there are {', '.join(KINDS)}")


def stationary(transition: FloatArray) -> FloatArray:
    """The distribution pi = pi P of a Markov chain with one: (K,)."""
    size = len(transition)
    equations = np.concatenate([transition.T - np.eye(size), np.ones((1, size))])
    return np.clip(np.linalg.lstsq(equations, np.eye(size + 1)[-1], rcond=None)[0], 0, None)


def _markov_chain(
    transition: FloatArray, shape: tuple[int, ...], rng: np.random.Generator, previous: IntArray | None = None
) -> IntArray:
    """Chains side by side: (number, length), from the stationary distribution or one step after `previous`."""
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
    """Row and column of every unit in a (rows, columns) table of counts, row by row."""
    flat = np.repeat(np.arange(counts.size), counts.ravel())
    return flat // counts.shape[1], flat % counts.shape[1]


def _within(times: FloatArray, marks: IntArray, until: FloatArray) -> Events:
    """The events before each row's horizon, flat."""
    inside = times < until[:, None]
    offsets = np.concatenate([[0], np.cumsum(inside.sum(axis=1))])
    return Events(times[inside], marks[inside].astype(np.int32), offsets)
