"""Simulated processes against known moments and slow samplers."""

from __future__ import annotations

from math import exp, gamma

import numpy as np
import pytest
from scipy import stats

from naive.simulate import hawkes_compensator, ogata_thinning, self_correcting_compensator
from neuroseqret.data.sequences import EventSequences
from neuroseqret.datasets.simulated_processes import KINDS, Hawkes, Renewal, SelfCorrecting, random_process, stationary
from neuroseqret.errors import UserError

HAWKES = Hawkes(np.array([0.3, 0.5]), np.array([[0.4, 0.2], [0.1, 0.3]]), decay=2.0)
TRANSITION = np.array([[0.1, 0.9], [0.6, 0.4]])


def counts_of(events) -> np.ndarray:
    return np.diff(events.offsets)


def nearly(values, wanted: float, sigmas: float = 4.5) -> bool:
    """The mean of independent values is `wanted`, as far as their number can tell."""
    return abs(np.mean(values) - wanted) < sigmas * np.std(values) / np.sqrt(len(values))


# -------------------------------------------------------------------- Hawkes


def test_hawkes_with_one_mark_has_the_known_mean_and_variance():
    mu, n, beta, horizon = 0.8, 0.5, 1.5, 40.0
    process = Hawkes(np.array([mu]), np.array([[n]]), beta)
    assert process.rate == pytest.approx(mu / (1 - n))
    counts = counts_of(process.sample(4000, horizon, np.random.default_rng(0)))
    # From an empty past: E lambda(t) = mu / (1 - n) * (1 - n exp(-beta (1 - n) t)).
    speed = beta * (1 - n)
    expected = mu / (1 - n) * (horizon - n * (1 - exp(-speed * horizon)) / speed)
    assert nearly(counts, expected)
    # In the long run Var N(T) / T = rate / (1 - n)^2.
    long = counts_of(process.sample(1500, 300.0, np.random.default_rng(1)))
    assert np.var(long) / 300 == pytest.approx(process.rate / (1 - n) ** 2, rel=0.15)


def test_hawkes_marks_have_their_stationary_rates():
    wanted = np.linalg.inv(np.eye(2) - HAWKES.branching.T) @ HAWKES.base
    assert HAWKES.rates == pytest.approx(wanted)
    events = HAWKES.sample(300, 500.0, np.random.default_rng(0))
    rates = np.bincount(events.marks, minlength=2) / (300 * 500)
    assert rates == pytest.approx(wanted, rel=0.03)


def test_hawkes_equals_thinning_in_distribution():
    rng = np.random.default_rng(0)
    slow = [ogata_thinning(HAWKES, 8.0, rng) for _ in range(250)]
    fast = HAWKES.sample(4000, 8.0, np.random.default_rng(1))
    assert stats.ks_2samp([len(t) for t, _ in slow], counts_of(fast)).pvalue > 1e-3
    slow_gaps = np.concatenate([np.diff(t) for t, _ in slow])
    inner = np.ones(len(fast.times) - 1, bool)
    inner[np.unique(fast.offsets[1:-1][fast.offsets[1:-1] > 0]) - 1] = False
    assert stats.ks_2samp(slow_gaps, np.diff(fast.times)[inner]).pvalue > 1e-3
    slow_share = np.mean(np.concatenate([x for _, x in slow]))
    assert slow_share == pytest.approx(fast.marks.mean(), abs=0.05)


def test_hawkes_on_its_own_clock_is_a_poisson_process():
    """Time rescaling: each mark's compensator between its events is exponential with mean 1."""
    events = HAWKES.sample(1, 400.0, np.random.default_rng(3))
    for mark in range(2):
        own = events.times[events.marks == mark]
        clock = [hawkes_compensator(HAWKES, events.times, events.marks, t)[mark] for t in own]
        assert stats.kstest(np.diff(clock, prepend=0), "expon").pvalue > 1e-3


def test_an_explosive_process_is_refused():
    with pytest.raises(UserError, match=r"spectral radius below 1 \(it is 1.2\)"):
        Hawkes(np.array([1.0]), np.array([[1.2]]), 1.0)


# -------------------------------------------------------------------- self-correcting


def test_self_correcting_has_the_rate_drift_over_drop():
    process = SelfCorrecting(2.0, 0.5, TRANSITION)
    counts = counts_of(process.sample(500, 50.0, np.random.default_rng(0)))
    assert counts.mean() / 50 == pytest.approx(4, rel=0.02)
    assert counts.var() < 0.1 * counts.mean()  # far more even than a Poisson process


def test_self_correcting_on_its_own_clock_is_a_poisson_process():
    process = SelfCorrecting(1.5, 0.4, TRANSITION)
    events = process.sample(60, 20.0, np.random.default_rng(1))
    clock = [
        part
        for begin, stop in zip(events.offsets[:-1], events.offsets[1:], strict=True)
        # The last event before the horizon was chosen by the horizon: first ones only.
        for part in self_correcting_compensator(process, events.times[begin : min(stop, begin + 25)])
    ]
    assert len(clock) == 60 * 25
    assert stats.kstest(clock, "expon").pvalue > 1e-3


# -------------------------------------------------------------------- renewal


@pytest.mark.parametrize(
    ("family", "shape", "variance"),
    [
        ("gamma", 2.5, 1 / 2.5),
        ("log-normal", 0.6, exp(0.6**2) - 1),
        ("weibull", 1.7, gamma(1 + 2 / 1.7) / gamma(1 + 1 / 1.7) ** 2 - 1),
    ],
)
def test_renewal_gaps_and_counts_have_the_known_moments(family, shape, variance):
    mean = 0.5
    process = Renewal(family, np.array([mean]), shape, np.ones((1, 1)))
    gaps = process.unit_gaps((200_000,), np.random.default_rng(0))
    assert nearly(gaps, 1.0)
    assert gaps.var() == pytest.approx(variance, rel=0.05)
    horizon = 300.0
    counts = counts_of(process.sample(2000, horizon, np.random.default_rng(1)))
    # E N(T) = T / m + (variance - 1) / 2 and Var N(T) = T variance / m in the long run (unit variance: gaps / m).
    assert nearly(counts, horizon / mean + (variance - 1) / 2)
    assert counts.var() == pytest.approx(horizon * variance / mean, rel=0.15)


def test_gaps_of_a_mark_and_transitions_are_its_own():
    process = Renewal("gamma", np.array([0.2, 1.0]), 3.0, TRANSITION)
    events = process.sample(1, 20_000.0, np.random.default_rng(0))
    gaps = np.diff(events.times, prepend=0)
    for mark in (0, 1):
        assert nearly(gaps[events.marks == mark], process.means[mark])
        after = events.marks[1:][events.marks[:-1] == mark]
        assert after.mean() == pytest.approx(TRANSITION[mark, 1], abs=0.02)
    assert events.marks.mean() == pytest.approx(stationary(TRANSITION)[1], abs=0.02)
    assert len(gaps) / 20_000 == pytest.approx(process.rate, rel=0.02)
    assert stationary(TRANSITION) @ TRANSITION == pytest.approx(stationary(TRANSITION))


def test_rare_long_gaps_are_followed_to_the_horizon():
    process = Renewal("log-normal", np.array([1.0]), 2.0, np.ones((1, 1)))
    events = process.sample(500, 100.0, np.random.default_rng(0))
    assert (events.times < 100).all()
    assert counts_of(events).mean() > 75


# -------------------------------------------------------------------- any process


@pytest.mark.parametrize("kind", KINDS)
def test_random_processes_have_the_rate_asked_for(kind):
    rng = np.random.default_rng(5)
    for _ in range(3):
        process = random_process(kind, 4, 1.7, rng)
        rate = process.drift / process.drop if isinstance(process, SelfCorrecting) else process.rate
        assert rate == pytest.approx(1.7)
        events = process.sample(300, 300.0, rng)
        assert counts_of(events).mean() / 300 == pytest.approx(1.7, rel=0.05)
        assert set(events.marks) <= set(range(4))


@pytest.mark.parametrize("kind", KINDS)
def test_realisations_are_functions_of_the_seed(kind):
    process = random_process(kind, 3, 1.0, np.random.default_rng(0))
    times, marks, offsets = process.sample(50, 30.0, np.random.default_rng(4))
    EventSequences.from_arrays(times, marks, offsets, validate=False).windows(events=5).validate()
    again = process.sample(50, 30.0, np.random.default_rng(4))
    assert all(map(np.array_equal, again, (times, marks, offsets)))
    assert not np.array_equal(process.sample(50, 30.0, np.random.default_rng(5)).times, times)
    assert process.sample(0, 5.0, np.random.default_rng(0)).offsets.tolist() == [0]
    assert len(times)
    assert 0 < times.min() <= times.max() < 30


def test_an_unknown_kind_is_refused():
    with pytest.raises(UserError, match="there is no process 'poisson'; choose from hawkes"):
        random_process("poisson", 2, 1.0, np.random.default_rng(0))
