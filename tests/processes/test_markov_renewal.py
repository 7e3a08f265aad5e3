from __future__ import annotations

import numpy as np
import pytest

from naive import models as naive
from naive.random_sequences import random_sequences
from neuroseqret.data.sequences import EventSequences
from neuroseqret.processes import markov_renewal as markov
from neuroseqret.processes.markov_renewal import MarkovRenewal
from neuroseqret.processes.time_scale import TimeScale


def fitted(sequences: EventSequences, marks: int | None = None) -> MarkovRenewal:
    return MarkovRenewal.fit(sequences, TimeScale.fit(sequences), marks or sequences.num_marks)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("windows", [True, False])
@pytest.mark.parametrize("marks", [3, 100, 1500])
def test_statistics_are_the_naive_ones(seed, windows, marks):
    corpus = random_sequences(seed, number=30, marks=marks + 1, windows=windows)
    model = fitted(corpus, marks=marks)  # the last mark is unknown to it
    fast = model.statistics(corpus)
    for row, sequence in enumerate(corpus):
        start = sequence.times[0] if sequence.start is None else sequence.start
        end = sequence.times[-1] if sequence.end is None else sequence.end
        slow = naive.markov_statistics(model, sequence.times.tolist(), sequence.marks.tolist(), start, end)
        np.testing.assert_allclose(fast[row], slow, rtol=1e-4, atol=1e-5)


def test_features_are_centred_and_whitened_over_the_corpus():
    corpus = random_sequences(1, number=200)
    model = fitted(corpus)
    features = model.features(corpus)
    assert features.shape == (200, model.size)
    assert np.abs(features).max() <= 5
    moved = features.std(0) > 0
    assert moved.mean() > 0.5
    np.testing.assert_allclose(features[:, moved].mean(0), 0, atol=0.25)  # clipping moves it a little
    np.testing.assert_allclose(features[:, moved].std(0), 1, atol=0.5)


def test_a_sequence_does_not_depend_on_its_neighbours():
    corpus = random_sequences(2, number=20)
    model = fitted(corpus)
    whole = model.features(corpus)
    for row in (0, 7, 19):
        np.testing.assert_allclose(model.features(corpus[row : row + 1])[0], whole[row], atol=1e-5)


@pytest.mark.parametrize("events", [1, 7, 40, 10_000])
def test_how_many_events_are_counted_at_once_changes_no_bit(events, monkeypatch):
    corpus = random_sequences(3, number=25)
    model = fitted(corpus)
    whole = model.features(corpus)
    monkeypatch.setattr(markov, "_EVENTS", events)
    np.testing.assert_array_equal(model.features(corpus), whole)


def test_no_more_events_are_counted_at_once_than_fit_the_cache(monkeypatch):
    corpus = random_sequences(4, number=40)
    model, counted = fitted(corpus), []
    count = MarkovRenewal._count
    monkeypatch.setattr(markov, "_EVENTS", 30)
    monkeypatch.setattr(MarkovRenewal, "_count", lambda self, some, *to: (counted.append(some), count(self, some, *to)))
    model.statistics(corpus)
    assert sum(map(len, counted)) == len(corpus)
    assert max(len(some.times) for some in counted if len(some) > 1) <= 30
    assert len(counted) < len(corpus)


def test_too_many_mark_pairs_keep_the_most_frequent():
    rng = np.random.default_rng(0)
    marks = np.concatenate([np.tile([0, 1], 500), rng.integers(0, 60, 3000)])
    corpus = EventSequences.from_arrays(np.arange(4000.0), marks, np.arange(0, 4001, 40))
    model = fitted(corpus)
    assert len(model.tensors["pairs"]) == 256
    assert {1, 60} <= set(model.tensors["pairs"].tolist())  # 0 then 1, and 1 then 0


@pytest.mark.parametrize(
    "times",
    [[0.0], [2.0, 2.0, 2.0], [0.0, 1e12], [0.0, 1e-9, 2e-9]],
    ids=["one event", "ties", "far", "near"],
)
def test_awkward_sequences_are_finite(times):
    model = fitted(random_sequences(3, number=30))
    strange = EventSequences.from_lists([(times, [99] * len(times))])
    assert np.isfinite(model.features(strange)).all()
    assert np.isfinite(fitted(strange).features(strange)).all()
