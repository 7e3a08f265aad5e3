"""Local states and cross attention between events, against their naive references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import strategies  # noqa: F401  (its profile has no deadline)
from naive.cross import event_agreement, local_outputs
from naive.random_sequences import random_sequences
from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_attention import agreements, shares
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.local_states import REACH, LocalStates, fit_states, spread
from neuroseqret.processes.time_scale import TimeScale


def bank_of(corpus: EventSequences, names: tuple[str, ...] = ()) -> ConvolutionBank:
    return ConvolutionBank.fit(corpus, TimeScale.fit(corpus), 3, EventValues.fit(corpus, names), 40, 0)


@pytest.mark.parametrize("names", [(), ("amount",)])
def test_states_are_the_outputs_of_the_bank_around_each_event(names):
    corpus = random_sequences(1, number=12, marks=4, windows=True)  # the last mark is unknown to the bank
    rng = np.random.default_rng(0)
    corpus = corpus.with_column("amount", [rng.lognormal(size=n).tolist() for n in corpus.lengths])
    bank = bank_of(corpus, names)
    local, fitted = LocalStates.of_bank(bank), fit_states(bank, corpus)
    found, offsets, _ = local.raw(corpus)
    naive = [local_outputs(bank, corpus[r : r + 1], REACH, local.size) for r in range(len(corpus))]
    np.testing.assert_allclose(found, np.concatenate(naive), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(offsets, corpus.offsets)
    whole, _, _ = fitted.raw(corpus)
    np.testing.assert_allclose(whole.mean(0), 0, atol=1e-3)  # principal components of the corpus, folded in
    used = whole.std(0) > 1e-3
    assert used.sum() > 3
    np.testing.assert_allclose(np.cov(whole[:, used].T, bias=True), np.eye(used.sum()), atol=2e-2)


@given(st.integers(0, 9999), st.integers(1, 9), st.floats(0.5, 40))
def test_agreement_is_the_naive_one_and_splits_over_pairs(seed: int, size: int, sharpness: float) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, 4)
    states = rng.normal(size=(int(lengths.sum()) + 3, size)).astype(np.float32)
    states /= np.linalg.norm(states, axis=1, keepdims=True)
    query, candidates, offsets = states[:3], states[3:], np.concatenate([[0], np.cumsum(lengths)])
    found = agreements(query, candidates, offsets, sharpness)
    for c, value in enumerate(found):
        own = candidates[offsets[c] : offsets[c + 1]]
        assert value == pytest.approx(event_agreement(query, own, sharpness), abs=1e-4)
        assert shares(query, own, sharpness).sum() == pytest.approx(float(value), abs=1e-4)
    same = agreements(query, query, np.array([0, 3]), 1e3)[0]
    assert same == pytest.approx(1, abs=1e-3)  # a sequence agrees with itself, and nothing agrees more
    assert found.max() <= 1 + 1e-4


def test_sequences_without_events_agree_with_nothing():
    assert agreements(np.zeros((0, 4), np.float32), np.ones((2, 4), np.float32), np.array([0, 2]), 8.0).tolist() == [0]
    query = np.array([[1, 0]], np.float32)
    assert agreements(query, query, np.array([0, 0, 1]), 8.0).tolist() == [0, 1]


def test_long_sequences_keep_states_that_are_spread():
    kept, offsets = spread(np.array([0, 3, 1003]), 10)
    assert offsets.tolist() == [0, 3, 13]
    assert kept.tolist() == [0, 1, 2, *range(3, 1003, 100)]
