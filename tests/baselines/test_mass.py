"""MASS against loops and against stumpy; awkward series."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import baselines as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.baselines import mass
from neuroseqret.baselines.mass import MASS
from neuroseqret.baselines.series import inter_event_times, standardise
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError

#: A few levels only, so that constant windows, equal windows and ties occur.
VALUES = st.lists(st.integers(0, 3).map(float), min_size=1, max_size=12)


def from_gaps(*series: list[float]) -> EventSequences:
    """Sequences whose inter-event times are the given ones."""
    return EventSequences.from_lists([(np.cumsum([0.0, *s]), np.zeros(len(s) + 1, int)) for s in series])


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_inter_event_times_and_standardise_equal_loops(seed: int) -> None:
    sequences = random_sequences(seed)
    series = inter_event_times(sequences)
    for row, (times, _) in zip(series.split(), sequences.to_lists(), strict=True):
        np.testing.assert_allclose(row, naive.gaps(times), atol=1e-12)
    for row, raw in zip(standardise(series).split(), series.split(), strict=True):
        np.testing.assert_allclose(row, naive.standardised(raw.tolist()), atol=1e-9)


def test_series_of_a_slice_and_of_nothing() -> None:
    sequences = random_sequences(3, number=8)
    whole, part = inter_event_times(sequences).split(), inter_event_times(sequences[2:5]).split()
    for a, b in zip(whole[2:5], part, strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(inter_event_times(sequences[:0])) == 0


def test_a_metronome_on_an_epoch_clock_is_constant() -> None:
    times = 1.7e9 + np.arange(50) * 0.1
    assert len(set(np.diff(times))) > 1, "the clock rounds, so raw gaps differ"
    sequences = EventSequences.from_lists([(times, np.zeros(50, int))])
    assert set(standardise(inter_event_times(sequences)).values) == {0.0}


@given(VALUES, VALUES)
@settings(max_examples=100, deadline=None)
def test_score_equals_loops(a: list[float], b: list[float]) -> None:
    found = MASS().score(from_gaps(a), from_gaps(b))
    np.testing.assert_allclose(found, naive.best_correlation(a, b), atol=1e-6)
    np.testing.assert_allclose(found, MASS().score(from_gaps(b), from_gaps(a)).T, atol=1e-6)


@given(VALUES, VALUES)
@settings(max_examples=100, deadline=None)
def test_fft_equals_loops(a: list[float], b: list[float]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mass, "FFT_PAYS", 1)
        found = MASS().score(from_gaps(a), from_gaps(b))
    np.testing.assert_allclose(found, naive.best_correlation(a, b), atol=1e-6)


def test_agrees_with_stumpy() -> None:
    stumpy = naive.library("stumpy")
    rng = np.random.default_rng(0)
    for n, m in ((40, 40), (25, 60), (3, 50)):
        a, b = rng.lognormal(0, 1, n), rng.lognormal(0, 1, m)
        nearest = stumpy.mass(a, b).min()
        found = MASS().score(from_gaps(a.tolist()), from_gaps(b.tolist()))[0, 0]
        assert found == pytest.approx(1 - nearest**2 / (2 * n), abs=1e-6)


def test_ranks_a_hidden_copy_first_whatever_its_level_and_scale() -> None:
    rng = np.random.default_rng(1)
    motif = rng.lognormal(0, 1, 20)
    noise = [rng.lognormal(0, 1, 50) for _ in range(30)]
    hidden = np.concatenate([noise[0][:15], 5 + 3 * motif, noise[0][15:]])
    scores = MASS().score(from_gaps(motif.tolist())[0], from_gaps(*(n.tolist() for n in noise), hidden.tolist()))
    assert scores.shape == (31,)
    assert scores.argmax() == 30
    assert scores[30] == pytest.approx(1)


def test_one_event_and_constant_gaps_are_finite() -> None:
    sequences = from_gaps([1.0], [2.0] * 9, [1.0, 2.0, 3.0], [1e-300, 5e-300], [1e200, 3e200, 1e-200])
    single = EventSequences.from_lists([([4.0], [0])])
    for method in ("mass", "udtw"):
        model = methods.make(method)
        for queries in (sequences, single):
            assert np.isfinite(model.score(queries, sequences)).all()
            assert np.isfinite(model.score(queries, single)).all()


def test_save_and_load_score_the_same(tmp_path) -> None:
    sequences = random_sequences(5, number=10)
    model = MASS().fit(sequences, sequences)
    loaded = methods.load(model.save(tmp_path / "m"))
    assert isinstance(loaded, MASS)
    np.testing.assert_array_equal(loaded.score(sequences, sequences), model.score(sequences, sequences))
    assert loaded.card is not None
    assert loaded.card.corpus_fingerprint == sequences.fingerprint()
    (tmp_path / "m" / "config.json").write_text("{}")
    with pytest.raises(UserError, match="not written by"):
        MASS.load(tmp_path / "m")
