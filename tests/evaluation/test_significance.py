"""Tests over queries against enumeration, scipy and hand-made cases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import evaluation as naive
from neuroseqret.errors import UserError
from neuroseqret.evaluation.significance import bootstrap_interval, fisher_exact_test, holm, randomisation_test

VALUES = st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=9))
def test_randomisation_agrees_with_all_labellings(pairs):
    first, second = zip(*pairs, strict=True)
    exact = naive.exact_randomisation_p(first, second)
    drawn = randomisation_test(first, second, permutations=4000, seed=1)[0]
    assert abs(drawn - exact) < 5 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3


def test_many_comparisons_are_the_single_ones_and_the_seed_decides():
    values = np.random.default_rng(0).random((50, 3))
    other = values + np.array([0.0, 0.02, 0.2]) * np.random.default_rng(1).random((50, 3))
    together = randomisation_test(values, other, permutations=2000, seed=3)
    apart = [randomisation_test(values[:, i], other[:, i], permutations=2000, seed=3)[0] for i in range(3)]
    assert together.tolist() == apart
    assert together[0] == 1.0  # equal methods
    assert together[2] == 1 / 2001  # always worse: only the observed labelling is as extreme
    close = values[:, 1] + np.random.default_rng(2).normal(0.02, 0.1, 50)
    drawn = [randomisation_test(values[:, 1], close, permutations=500, seed=seed)[0] for seed in (4, 4, 5)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_randomisation_keeps_its_level():
    """Methods that differ by noise alone are marked at 5 % about once in twenty."""
    generator = np.random.default_rng(0)
    p = randomisation_test(generator.random((80, 400)), generator.random((80, 400)), permutations=999)
    assert 0.02 < (p <= 0.05).mean() < 0.09


def test_blocks_do_not_change_the_outcome(monkeypatch):
    first, second = np.random.default_rng(0).random((2, 40))
    whole = randomisation_test(first, second, permutations=1000, seed=2)
    monkeypatch.setattr("neuroseqret.evaluation.significance._BLOCK", 40 * 64)
    assert randomisation_test(first, second, permutations=1000, seed=2) == whole


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (3, 0), (5, 5), (20, 9), (300, 240)])
def test_fisher_exact_equals_scipy(won, lost):
    stats = pytest.importorskip("scipy.stats")
    first = [1.0] * won + [0.0] * lost + [0.5] * 4
    second = [0.0] * won + [1.0] * lost + [0.5] * 4
    expected = stats.fisher_exact([[won, lost], [lost, won]]).pvalue
    assert fisher_exact_test(first, second)[0] == pytest.approx(expected, rel=1e-6)


def test_bootstrap_interval_covers_the_mean():
    generator = np.random.default_rng(0)
    samples = generator.normal(0.3, 1.0, (100, 300))  # 300 experiments with 100 queries each
    low, high = bootstrap_interval(samples, level=0.9, resamples=400, seed=1)
    assert 0.82 < ((low <= 0.3) & (high >= 0.3)).mean() < 0.96
    assert np.allclose((high - low).mean(), 2 * 1.645 * 0.1, rtol=0.1)


def test_bootstrap_of_a_constant_is_the_constant():
    low, high = bootstrap_interval(np.full(7, 0.25), resamples=50)
    assert low[0] == high[0] == 0.25


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_agrees_with_the_definition(p):
    assert holm(p).tolist() == pytest.approx(naive.holm(p))


def test_holm_by_hand_and_over_a_table():
    assert holm([0.01, 0.04, 0.03]).tolist() == pytest.approx([0.03, 0.06, 0.06])
    table = holm([[0.01, np.nan], [0.04, 0.03]])
    assert table[0].tolist() == pytest.approx([0.03, np.nan], nan_ok=True)
    assert table[1].tolist() == pytest.approx([0.06, 0.06])


def test_what_cannot_be_tested_is_said():
    with pytest.raises(UserError, match="at least one query"):
        randomisation_test([], [])
    with pytest.raises(UserError, match="same queries"):
        randomisation_test([0.1, 0.2], [0.1])
    with pytest.raises(UserError, match="finite"):
        fisher_exact_test([0.1, np.nan], [0.1, 0.2])
    with pytest.raises(UserError, match="between 0 and 1"):
        bootstrap_interval([0.1], level=95)
