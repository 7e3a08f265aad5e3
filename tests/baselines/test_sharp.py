"""Sharp soft-DTW against sums over all alignments and against tslearn; gamma is chosen on validation alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import baselines as naive
from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.baselines.sharp import GAMMAS, Sharp, _tuning_part
from neuroseqret.baselines.soft_dtw import LANES, sharp_costs
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences, FloatArray
from neuroseqret.errors import UserError
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.training.task import TrainingTask

VALUES = st.lists(st.floats(-3, 3), min_size=1, max_size=5).map(np.array)
ONE = np.zeros(1, np.int64)


def cost(a: FloatArray, b: FloatArray, gamma: float) -> float:
    whole = [np.array([0, len(x)]) for x in (a, b)]
    return float(sharp_costs(a, whole[0], ONE, b, whole[1], ONE, gamma, max(len(a), len(b)))[0])


@given(VALUES, VALUES, st.sampled_from(GAMMAS))
@settings(max_examples=80, deadline=None)
def test_cost_is_the_mean_over_all_alignments(a: FloatArray, b: FloatArray, gamma: float) -> None:
    assert cost(a, b, gamma) == pytest.approx(naive.sharp_cost(a, b, gamma), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_cost_agrees_with_tslearn(gamma: float) -> None:
    metrics = naive.library("tslearn.metrics")
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(15), rng.standard_normal(22)
    # tslearn's cost has no factor 1/2.
    alignment, _ = metrics.soft_dtw_alignment(a / np.sqrt(2), b / np.sqrt(2), gamma=gamma)
    expected = (alignment * 0.5 * (a[:, None] - b) ** 2).sum()
    assert cost(a, b, gamma) == pytest.approx(expected, rel=1e-6)


def test_lanes_do_not_touch_one_another() -> None:
    rng = np.random.default_rng(1)
    series = [rng.standard_normal(n) for n in rng.integers(1, 30, 2 * LANES + 3)]
    values, offsets = np.concatenate(series), np.cumsum([0, *(len(s) for s in series)])
    left, right = np.arange(len(series)), rng.permutation(len(series))  # not even in order of length
    together = sharp_costs(values, offsets, left, values, offsets, right, 0.1, 30)
    apart = [cost(series[i], series[j], 0.1) for i, j in zip(left, right, strict=True)]
    np.testing.assert_allclose(together, apart, rtol=1e-12)


def test_score_is_the_divergence_by_length() -> None:
    queries, candidates = random_sequences(1, longest=6), random_sequences(2, number=9, longest=6)
    scores = Sharp(gamma=0.5, scale=2.0).score(queries, candidates)
    for q, (query, _) in enumerate(queries.to_lists()):
        for c, (candidate, _) in enumerate(candidates.to_lists()):
            a, b = (np.array(naive.gaps(t)) / 2.0 for t in (query, candidate))
            expected = -naive.sharp_divergence(a, b, 0.5) / max(len(a), len(b))
            assert scores[q, c] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_equal_series_are_best_and_extremes_are_finite() -> None:
    lists = [([0.0], [0]), ([0.0, 1.0, 2.0], [0] * 3), ([0.0, 1e-9, 1e9], [0] * 3), ([3.0, 3.0, 3.0, 3.0], [0] * 4)]
    sequences = EventSequences.from_lists(lists)
    for gamma in GAMMAS:
        model = Sharp(gamma).fit(sequences, sequences)
        scores = model.score(sequences, sequences)
        assert np.isfinite(scores).all()
        assert (scores <= np.diag(scores)[:, None] + 1e-6).all()
        np.testing.assert_allclose(np.diag(scores), 0, atol=1e-6)


def rates(seed: int, number: int, splits: bool) -> EventSequences:
    """Three groups that differ in rate."""
    rng = np.random.default_rng(seed)
    lists = []
    for i in range(number):
        gaps = rng.lognormal(0.7 * (i % 3), 0.3, rng.integers(8, 16))
        lists.append((np.cumsum(gaps), np.zeros(len(gaps), int)))
    columns = {"metadata": {"split": [("train", "validation", "test")[i // 3 % 3] for i in range(number)]}}
    names = [f"s{seed}-{i}" for i in range(number)]
    return EventSequences.from_lists(
        lists, ids=names, groups=[str(i % 3) for i in range(number)], **(columns if splits else {})
    )


def test_fit_takes_the_best_gamma_on_validation_and_ranks(tmp_path) -> None:
    queries, corpus = rates(0, 45, True), rates(1, 60, False)
    model = Sharp().fit(queries, corpus)
    part = queries[np.array(queries.column("split").to_pylist()) == "validation"]
    truth = Relevance.from_groups(part, corpus)
    found = {g: mean_average_precision(Sharp(g, model.scale).score(part, corpus), truth) for g in GAMMAS}
    assert found[model.gamma] == max(found.values())
    assert model.card.validation["AP"] == pytest.approx(max(found.values()))
    assert model.card.notes["tried"] == pytest.approx({f"{g:g}": ap for g, ap in found.items()})
    assert model.card.settings == {"gamma": None, "scale": None}
    assert found[model.gamma] > 0.6, "chance is a third"
    loaded = methods.load(model.save(tmp_path / "m"))
    assert isinstance(loaded, Sharp)
    assert (loaded.gamma, loaded.scale) == (model.gamma, model.scale)
    np.testing.assert_array_equal(loaded.score(part, corpus), model.score(part, corpus))


def test_without_labels_nothing_is_chosen() -> None:
    queries, corpus = rates(0, 45, True), rates(1, 60, False)
    for asked in (None, queries.without_columns("group")):
        model = Sharp().fit(asked, corpus)
        assert model.gamma == 1.0
        assert model.card.validation == {}
        assert not model.card.unlabelled


def test_test_queries_do_not_matter_to_fit() -> None:
    queries, corpus = rates(0, 45, True), rates(1, 60, False)
    seen = np.array(queries.column("split").to_pylist()) != "test"
    assert Sharp().fit(queries, corpus).card.notes == Sharp().fit(queries[seen], corpus).card.notes


def test_budget_of_seconds_shrinks_the_tuning() -> None:
    queries, corpus = rates(0, 45, True), rates(1, 60, False)
    sizes = []
    for seconds in (None, 0.005, 1e-9):
        judged = _tuning_part(TrainingTask.of(queries, corpus, needs_labels=False, max_seconds=seconds))
        assert judged is not None
        sizes.append(len(judged[0]))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == 15
    assert sizes[2] == 1


def test_user_errors() -> None:
    with pytest.raises(UserError, match="gamma must be positive"):
        Sharp(gamma=0.0)
    with pytest.raises(UserError, match="no scale; call fit"):
        Sharp().score(rates(0, 3, False), rates(1, 3, False))
