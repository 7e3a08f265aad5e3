"""UDTW against loops and dtaidistance; pruning changes nothing but the work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import baselines as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.baselines import udtw
from neuroseqret.baselines.udtw import UDTW, lower_bounds
from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.errors import UserError

VALUES = st.lists(st.floats(-3, 3), min_size=1, max_size=14).map(np.array)
WINDOWS = st.sampled_from([0.0, 0.05, 0.2, 1.0])


def whole(values: FloatArray) -> np.ndarray:
    return np.array([0, len(values)])


def walks(seed: int, number: int, shortest: int = 2, longest: int = 60) -> EventSequences:
    """Gaps that wander, so that shapes differ and bounds are worth something."""
    rng = np.random.default_rng(seed)
    lists = []
    for _ in range(number):
        gaps = np.exp(np.cumsum(rng.normal(0, 0.3, rng.integers(shortest, longest))))
        lists.append((np.cumsum(gaps), np.zeros(len(gaps), int)))
    return EventSequences.from_lists(lists)


@given(VALUES, VALUES, WINDOWS)
@settings(max_examples=200, deadline=None)
def test_distance_equals_loops(a: FloatArray, b: FloatArray, window: float) -> None:
    found = udtw._all_distances(a, whole(a), b, whole(b), window)
    np.testing.assert_allclose(found, naive.dtw(a, b, window), atol=1e-9)


@given(VALUES, VALUES, WINDOWS)
@settings(max_examples=200, deadline=None)
def test_lower_bound_is_below(a: FloatArray, b: FloatArray, window: float) -> None:
    bound = lower_bounds(a, b, whole(b), np.zeros(1, np.int64), window)[0]
    assert bound <= naive.dtw(a, b, window) + 1e-9


def test_agrees_with_dtaidistance() -> None:
    dtw = pytest.importorskip("dtaidistance.dtw")
    rng = np.random.default_rng(0)
    for _ in range(40):
        a, b = (rng.standard_normal(rng.integers(1, 40)) for _ in range(2))
        longest, window = max(len(a), len(b)), float(rng.choice([0, 0.05, 0.3, 1]))
        width = int(window * longest) + 1  # dtaidistance counts the diagonal itself
        distance = udtw._all_distances(a, whole(a), b, whole(b), window)[0, 0]
        assert distance == pytest.approx(dtw.distance(a, b, window=width) / np.sqrt(longest))
        bound = lower_bounds(a, b, whole(b), np.zeros(1, np.int64), window)[0]
        assert bound == pytest.approx(dtw.lb_keogh(b, a, window=width) / np.sqrt(longest))


def test_score_standardises_and_equals_loops() -> None:
    queries, candidates = random_sequences(1), random_sequences(2, number=9)
    scores = UDTW(0.1).score(queries, candidates)
    for q, (query, _) in enumerate(queries.to_lists()):
        for c, (candidate, _) in enumerate(candidates.to_lists()):
            a, b = (naive.standardised(naive.gaps(t)) for t in (query, candidate))
            assert scores[q, c] == pytest.approx(-naive.dtw(a, b, 0.1), abs=1e-6)


@pytest.mark.parametrize("window", [0.0, 0.05, 1.0])
def test_nearest_is_the_top_of_score(window: float) -> None:
    model, candidates = UDTW(window), walks(0, 300)
    candidates = EventSequences.concat([candidates, candidates[:20].with_column("id", [f"copy{i}" for i in range(20)])])
    for query in (*walks(1, 4), candidates[3]):  # the last one has two equal best candidates
        scores = model.score(query, candidates)
        for k in (1, 10, 1000):
            rows, best = model.nearest(query, candidates, k)
            expected = np.lexsort((np.arange(len(scores)), -scores))[:k]
            np.testing.assert_array_equal(best, scores[expected])
            np.testing.assert_array_equal(rows[:10], expected[:10])


def test_pruning_leaves_work_out() -> None:
    many, query = UDTW().prepare(walks(0, 400, 40, 50)), UDTW().prepare(walks(5, 1, 40, 50))
    by_length = np.argsort(many.lengths, kind="stable")
    bounds = lower_bounds(query.values, many.values, many.offsets, by_length, 0.05)
    *_, begun = udtw._walk(query.values, many.values, many.offsets, np.argsort(bounds), bounds, 5, 0.05)
    assert begun < 200


def test_nearest_of_nothing_and_of_constants() -> None:
    model, candidates = UDTW(), walks(0, 5)
    rows, scores = model.nearest(candidates[0], candidates[:0])
    assert len(rows) == len(scores) == 0
    constant = EventSequences.from_lists([([0.0, 1.0, 2.0, 3.0], [0] * 4), ([5.0], [0])])
    rows, scores = model.nearest(constant[0], EventSequences.concat([constant, constant]), 4)
    np.testing.assert_array_equal(rows, [0, 1, 2, 3])
    np.testing.assert_array_equal(scores, 0)


def test_save_and_load_keep_the_window(tmp_path) -> None:
    sequences = random_sequences(5, number=10)
    model = UDTW(0.3).fit(sequences, sequences)
    loaded = methods.load(model.save(tmp_path / "m"))
    assert isinstance(loaded, UDTW)
    assert loaded.window == 0.3
    np.testing.assert_array_equal(loaded.score(sequences, sequences), model.score(sequences, sequences))


def test_a_wrong_window_is_a_user_error() -> None:
    with pytest.raises(UserError, match="from 0 to 1"):
        UDTW(1.5)
