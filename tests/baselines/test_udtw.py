"""UDTW against loops and dtaidistance; the window is kept and checked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import baselines as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.baselines import udtw
from neuroseqret.baselines.udtw import UDTW
from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.errors import UserError

VALUES = st.lists(st.floats(-3, 3), min_size=1, max_size=14).map(np.array)
WINDOWS = st.sampled_from([0.0, 0.05, 0.2, 1.0])


def whole(values: FloatArray) -> np.ndarray:
    return np.array([0, len(values)])


@given(VALUES, VALUES, WINDOWS)
@settings(max_examples=200, deadline=None)
def test_distance_equals_loops(a: FloatArray, b: FloatArray, window: float) -> None:
    found = udtw._all_distances(a, whole(a), b, whole(b), window)
    np.testing.assert_allclose(found, naive.dtw(a, b, window), atol=1e-9)


def test_agrees_with_dtaidistance() -> None:
    dtw = pytest.importorskip("dtaidistance.dtw")
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b = (rng.standard_normal(rng.integers(1, 40)) for _ in range(2))
        longest, window = max(len(a), len(b)), float(rng.choice([0, 0.05, 0.3, 1]))
        width = int(window * longest) + 1  # dtaidistance counts the diagonal itself
        distance = udtw._all_distances(a, whole(a), b, whole(b), window)[0, 0]
        assert distance == pytest.approx(dtw.distance(a, b, window=width) / np.sqrt(longest))


def test_score_standardises_and_equals_loops() -> None:
    queries, candidates = random_sequences(1), random_sequences(2, number=9)
    scores = UDTW(0.1).score(queries, candidates)
    for q, (query, _) in enumerate(queries.to_lists()):
        for c, (candidate, _) in enumerate(candidates.to_lists()):
            a, b = (naive.standardised(naive.gaps(t)) for t in (query, candidate))
            assert scores[q, c] == pytest.approx(-naive.dtw(a, b, 0.1), abs=1e-6)


def test_constant_series_and_single_events_are_at_distance_0() -> None:
    constant = EventSequences.from_lists([([0.0, 1.0, 2.0, 3.0], [0] * 4), ([5.0], [0])])
    np.testing.assert_array_equal(UDTW().score(constant, constant), np.zeros((2, 2)))


def test_save_and_load_keep_the_window(tmp_path) -> None:
    sequences = random_sequences(5, number=10)
    model = UDTW(0.3).fit(sequences, sequences)
    loaded = methods.load(model.save(tmp_path / "m"))
    assert isinstance(loaded, UDTW)
    assert loaded.settings.window == 0.3
    np.testing.assert_array_equal(loaded.score(sequences, sequences), model.score(sequences, sequences))


def test_a_wrong_window_is_a_user_error() -> None:
    with pytest.raises(UserError, match="from 0 to 1"):
        UDTW(1.5)
