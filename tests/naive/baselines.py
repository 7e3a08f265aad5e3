"""Slow and simple references for the baselines: loops, sums over all alignments, integrals by quadrature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import numba
import numpy as np
import pytest

from neuroseqret.data.sequences import EventSequences


def library(name: str) -> ModuleType:
    """Import a library to compare with, with its numba functions uncompiled: compiling takes longer than the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "DISABLE_JIT", True)
        return pytest.importorskip(name)


# -------------------------------------------------------------------- series


def gaps(times: Sequence[float]) -> list[float]:
    return [b - a for a, b in itertools.pairwise(times)] or [0.0]


def standardised(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / len(values))
    return [(v - mean) / deviation for v in values] if max(values) > min(values) else [0.0] * len(values)


def best_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Slide the shorter over the longer; correlation from the z-normalised distance, constants as in stumpy."""
    short, long = (a, b) if len(a) <= len(b) else (b, a)
    m = len(short)
    if m == 1:
        return 0.5
    found = []
    for begin in range(len(long) - m + 1):
        window = long[begin : begin + m]
        flat = [max(v) == min(v) for v in (short, window)]
        if all(flat):
            squared = 0.0
        elif any(flat):
            squared = float(m)
        else:
            squared = sum((x - y) ** 2 for x, y in zip(standardised(short), standardised(window), strict=True))
        found.append(1 - squared / (2 * m))
    return max(found)


def dtw(a: Sequence[float], b: Sequence[float], window: float) -> float:
    """Root mean squared cost of the best path in the band that spans both diagonals."""
    n, m = len(a), len(b)
    r = int(window * max(n, m))
    table = np.full((n + 1, m + 1), np.inf)
    table[0, 0] = 0
    for i in range(n):
        for j in range(m):
            if -r - max(0, n - m) <= j - i <= r + max(0, m - n):
                table[i + 1, j + 1] = (a[i] - b[j]) ** 2 + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return math.sqrt(table[n, m] / max(n, m))


def alignments(n: int, m: int) -> Iterator[list[tuple[int, int]]]:
    """Every monotone path from (0, 0) to (n - 1, m - 1)."""
    if n == 1 and m == 1:
        yield [(0, 0)]
        return
    for back_i, back_j in ((1, 0), (0, 1), (1, 1)):
        if n - back_i >= 1 and m - back_j >= 1:
            for path in alignments(n - back_i, m - back_j):
                yield [*path, (n - 1, m - 1)]


def sharp_cost(a: Sequence[float], b: Sequence[float], gamma: float) -> float:
    """Expected cost over all alignments, each with weight exp(-cost / gamma)."""
    costs = [sum(0.5 * (a[i] - b[j]) ** 2 for i, j in path) for path in alignments(len(a), len(b))]
    least = min(costs)
    weights = [math.exp(-(c - least) / gamma) for c in costs]
    return sum(w * c for w, c in zip(weights, costs, strict=True)) / sum(weights)


def sharp_divergence(a: Sequence[float], b: Sequence[float], gamma: float) -> float:
    return sharp_cost(a, b, gamma) - 0.5 * sharp_cost(a, a, gamma) - 0.5 * sharp_cost(b, b, gamma)


# -------------------------------------------------------------------- point processes


def integral(function: Callable[[float], float], end: float) -> float:
    """Integrate from 0 to `end` by adaptive quadrature."""
    from scipy.integrate import quad

    return float(quad(function, 0.0, end, limit=400, epsabs=1e-11, epsrel=1e-10)[0])


Weights = dict[str, np.ndarray]


def softplus(x: float, beta: float = 1.0) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(beta * x))) / beta


def gelu(x: float) -> float:
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def rmtpp_states(weights: Weights, marks: Sequence[int], log_gaps: Sequence[float]) -> list[np.ndarray]:
    """The recurrence, event by event."""
    w, u = weights["recurrent.weight_ih_l0"], weights["recurrent.weight_hh_l0"]
    bias = weights["recurrent.bias_ih_l0"] + weights["recurrent.bias_hh_l0"]
    state, found = np.zeros(len(u)), []
    for mark, log_gap in zip(marks, log_gaps, strict=True):
        state = np.tanh(w @ np.append(weights["mark.weight"][mark], log_gap) + u @ state + bias)
        found.append(state)
    return found


def rmtpp_rates(weights: Weights, state: np.ndarray, elapsed: float, time: float, highest: float = 20.0) -> list[float]:
    """lambda_k: one exponential, divided among the marks by a softmax."""
    level = float(weights["level.weight"][0] @ state + weights["level.bias"][0])
    total = math.exp(min(min(level, highest) + float(weights["slope"]) * elapsed, highest))
    logits = weights["mark_logits.weight"] @ state + weights["mark_logits.bias"]
    shares = np.exp(logits - logits.max())
    return [float(total * s / shares.sum()) for s in shares]


def thp_rates(weights: Weights, state: np.ndarray, elapsed: float, time: float) -> list[float]:
    beta = np.exp(weights["log_softplus.log_beta"])
    base = weights["base.weight"] @ state + weights["base.bias"]
    return [
        softplus(float(a * elapsed / (time + 1) + b), k) for a, b, k in zip(weights["drift"], base, beta, strict=True)
    ]


def sahp_rates(weights: Weights, state: np.ndarray, elapsed: float, time: float) -> list[float]:
    beta = np.exp(weights["log_softplus.log_beta"])
    rates = []
    for k in range(len(beta)):
        level = gelu(float(weights["level.weight"][k] @ state))
        start = gelu(float(weights["start.weight"][k] @ state))
        decay = softplus(float(weights["decay.weight"][k] @ state))
        rates.append(softplus(level + (start - level) * math.exp(-decay * elapsed), float(beta[k])))
    return rates


def log_likelihood(
    rates: Callable[[np.ndarray, float, float], list[float]],
    states: Sequence[np.ndarray],
    times: Sequence[float],
    marks: Sequence[int],
) -> float:
    """Event by event, with the integral of the total rate by quadrature."""
    total = 0.0
    for i in range(1, len(times)):
        before, since, elapsed = states[i - 1], times[i - 1], times[i] - times[i - 1]
        total += math.log(rates(before, elapsed, since)[marks[i]])
        total -= integral(lambda tau, h=before, t=since: sum(rates(h, tau, t)), elapsed)
    return total


# -------------------------------------------------------------------- histograms


def plain_histograms(marks: int, sequences: EventSequences, edges: np.ndarray) -> np.ndarray:
    """Shares of marks, mark pairs and log gaps of every sequence, as in the benchmark's own trivial baseline."""
    rows = []
    for one in sequences:
        of_marks, pairs, of_gaps = np.zeros(marks), np.zeros((marks, marks)), np.zeros(len(edges) + 1)
        for mark in one.marks:
            of_marks[mark] += 1 / len(one.marks)
        for (before, after), gap in zip(itertools.pairwise(one.marks), np.diff(one.times), strict=True):
            pairs[before, after] += 1 / (len(one.marks) - 1)
            of_gaps[np.searchsorted(edges, np.log(gap + 1e-6))] += 1 / (len(one.marks) - 1)
        rows.append(np.concatenate([of_marks, pairs.ravel(), of_gaps]))
    return np.array(rows)
