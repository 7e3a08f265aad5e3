from __future__ import annotations

import numpy as np
import pytest

from naive.bank import bank_statistics
from naive.random_sequences import random_sequences
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.time_scale import TimeScale


def with_values(sequences: EventSequences, seed: int = 0) -> EventSequences:
    rng = np.random.default_rng(seed)
    return sequences.with_column("amount", [rng.lognormal(size=n).tolist() for n in sequences.lengths])


def fitted(corpus: EventSequences, marks: int, names: tuple[str, ...] = (), kernels: int = 40) -> ConvolutionBank:
    return ConvolutionBank.fit(corpus, TimeScale.fit(corpus), marks, EventValues.fit(corpus, names), kernels, 0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("names", [(), ("amount",)])
@pytest.mark.parametrize("marks", [3, 1500])
def test_statistics_are_the_naive_ones(seed, names, marks):
    corpus = with_values(random_sequences(seed, number=30, marks=marks + 1, windows=bool(seed % 2)))
    bank = fitted(corpus, marks, names)  # the last mark is unknown to it
    np.testing.assert_allclose(bank.statistics(corpus), bank_statistics(bank, corpus), rtol=1e-4, atol=1e-4)


def test_long_sequences_are_pooled_block_by_block():
    """Gaps drift slowly, so that runs of positive outputs go on from block to block."""
    lengths = [63, 64, 65, 96, 97, 128, 129, 200]
    waves = [np.exp(np.sin(np.arange(n) / 25 + n)) for n in lengths]
    corpus = EventSequences.from_lists([(np.cumsum(gaps), np.arange(len(gaps)) // 90) for gaps in waves])
    bank = fitted(corpus, corpus.num_marks, kernels=15)
    found = bank.statistics(corpus)
    assert (found[:, -15:] * lengths[-1] > 64).any()  # runs longer than a block
    np.testing.assert_allclose(found, bank_statistics(bank, corpus), rtol=1e-4, atol=1e-4)


def test_a_sequence_does_not_depend_on_its_neighbours():
    corpus = random_sequences(2, number=20)
    bank = fitted(corpus, corpus.num_marks)
    whole = bank.features(corpus)
    for row in (0, 7, 19):
        np.testing.assert_array_equal(bank.features(corpus[row : row + 1])[0], whole[row])


def test_features_are_standardised_over_the_corpus():
    corpus = random_sequences(1, number=300)
    features = fitted(corpus, corpus.num_marks).features(corpus)
    assert np.abs(features).max() <= 5
    moved = features.std(0) > 0
    assert moved.mean() > 0.5
    np.testing.assert_allclose(features[:, moved].mean(0), 0, atol=0.3)


@pytest.mark.parametrize("length", [1, 2])
def test_sequences_shorter_than_a_kernel_get_the_mean_of_the_corpus(length):
    corpus = random_sequences(4, number=50)
    short = EventSequences.from_lists([(list(range(length)), [0] * length)])
    features = fitted(corpus, corpus.num_marks).features(short)
    assert np.isfinite(features).all()
    assert length > 1 or not features.any()


def test_the_shares_of_events_sum_to_the_features():
    corpus = with_values(random_sequences(5, number=40))
    bank = fitted(corpus, corpus.num_marks, ("amount",))
    for row in range(10):
        shares, rest, kinds = bank.event_shares(corpus[row : row + 1])
        assert shares.shape == (corpus.lengths[row], bank.size)
        assert kinds.shape == (bank.size,)
        np.testing.assert_allclose(shares.sum(0) + rest, bank.features(corpus[row : row + 1])[0], atol=1e-5)


def test_a_pattern_is_credited_to_the_events_that_form_it():
    rng = np.random.default_rng(0)
    gaps = rng.uniform(0.9, 1.1, (40, 60))
    corpus = EventSequences.from_lists([(np.cumsum(g), np.zeros(60, int)) for g in gaps])
    bank = fitted(corpus, 1, kernels=200)
    gaps[0, 30:33] = 0.05
    odd = EventSequences.from_lists([(np.cumsum(gaps[0]), np.zeros(60, int))])
    shares, _, _ = bank.event_shares(odd)
    difference = np.abs(bank.features(odd)[0] - bank.features(corpus[:1])[0])
    strongest = np.argsort(-difference[400:600])[:10] + 400  # maxima that the odd gaps moved
    assert np.isin(np.abs(shares[:, strongest]).argmax(0), range(12, 52)).mean() >= 0.8


def test_values_do_not_depend_on_their_unit_and_missing_ones_count_as_the_median():
    corpus = with_values(random_sequences(6, number=40))
    scaled = corpus.with_column("amount", [[1000 * v for v in row] for row in corpus.column("amount").to_pylist()])
    a, b = EventValues.fit(corpus, ["amount"]), EventValues.fit(scaled, ["amount"])
    np.testing.assert_allclose(a.of(corpus), b.of(scaled), atol=1e-5)
    missing = corpus.with_column("amount", [[None] * n for n in corpus.lengths])
    assert not a.of(missing.with_column("amount", [[float("nan")] * n for n in corpus.lengths])).any()


def test_a_column_that_is_not_there_is_named():
    corpus = random_sequences(7, number=5)
    with pytest.raises(UserError, match="'speed'"):
        EventValues.fit(corpus, ["speed"])
    texts = corpus.with_column("speed", [["fast"] * n for n in corpus.lengths])
    with pytest.raises(UserError, match="one number per event"):
        EventValues.fit(texts, ["speed"])
