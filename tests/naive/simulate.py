"""Slow, obvious samplers and intensities of point processes: one event after the other."""

from __future__ import annotations

import math

import numpy as np

from neuroseqret.datasets.simulated_processes import Hawkes, SelfCorrecting


def hawkes_intensity(process: Hawkes, times: list[float], marks: list[int], now: float) -> list[float]:
    """Intensity of every mark just after `now`, given the events until then."""
    rates = [float(mu) for mu in process.base]
    for time, mark in zip(times, marks, strict=True):
        if time <= now:
            for k in range(len(rates)):
                rates[k] += float(process.branching[mark, k]) * process.decay * math.exp(-process.decay * (now - time))
    return rates


def ogata_thinning(process: Hawkes, horizon: float, rng: np.random.Generator) -> tuple[list[float], list[int]]:
    """One realisation by thinning: between events the intensity falls, so its present value is a bound."""
    times: list[float] = []
    marks: list[int] = []
    now = 0.0
    while True:
        bound = sum(hawkes_intensity(process, times, marks, now))
        now += rng.exponential(1 / bound)
        if now >= horizon:
            return times, marks
        rates = hawkes_intensity(process, times, marks, now)
        if rng.random() * bound < sum(rates):
            times.append(now)
            marks.append(int(rng.choice(len(rates), p=np.array(rates) / sum(rates))))


def hawkes_compensator(process: Hawkes, times: np.ndarray, marks: np.ndarray, until: float) -> list[float]:
    """Integral of each mark's intensity over [0, until]."""
    total = [float(mu) * until for mu in process.base]
    for time, mark in zip(times, marks, strict=True):
        if time < until:
            for k in range(len(total)):
                total[k] += float(process.branching[mark, k]) * (1 - math.exp(-process.decay * (until - time)))
    return total


def self_correcting_compensator(process: SelfCorrecting, times: np.ndarray) -> list[float]:
    """Integral of the intensity between neighbouring events, from 0 on."""
    parts, before = [], 0.0
    for count, time in enumerate(times):
        scale = math.exp(-process.drop * count) / process.drift
        parts.append(scale * (math.exp(process.drift * time) - math.exp(process.drift * before)))
        before = float(time)
    return parts
