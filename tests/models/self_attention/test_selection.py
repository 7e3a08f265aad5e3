"""Weights of the members are chosen on what the metric has not seen."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from naive.random_sequences import random_sequences
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.splits import split_rows, unseen_half
from neuroseqret.datasets.simulate import simulate
from neuroseqret.measures.ranking_measures import average_precision
from neuroseqret.models.presets import DEFAULT, MemberSettings
from neuroseqret.models.self_attention import vectors as module
from neuroseqret.models.self_attention.judging import Judged
from neuroseqret.models.self_attention.model import SelfAttention
from neuroseqret.models.self_attention.selection import DIVISIONS, climb, trust
from neuroseqret.models.self_attention.vectors import affordable_rows, random_crops

USUAL = np.array([0.5, 0.5, 0.0])


THREE = (MemberSettings(), MemberSettings(kind="discriminant"), MemberSettings(kind="groups"))


def anything(weights: np.ndarray) -> bool:
    return True


def judged(*quality: float, queries: int = 200, candidates: int = 40) -> Judged:
    """Members whose scores tell relevant candidates apart by `quality` standard deviations."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permuted(np.tile(np.arange(candidates), (queries, 1)), axis=1)[:, :4], axis=1)
    truth = np.zeros((queries, candidates))
    np.put_along_axis(truth, rows, 1.0, axis=1)
    scores = [q * truth + rng.normal(size=truth.shape) for q in quality]
    return Judged(np.array(scores, np.float32), Relevance(np.arange(queries + 1) * 4, rows.ravel(), candidates))


def test_members_that_help_get_more_and_others_less():
    weights, moves = climb(judged(2.0, 0.0, 0.0), USUAL, anything)
    assert moves > 0
    assert weights[0] > 0.8
    assert weights.sum() == pytest.approx(1)


def test_a_metric_that_does_not_generalise_loses_to_the_whitened_vector():
    weights, _ = climb(judged(0.0, 0.0, 2.0), USUAL, anything)
    assert weights[2] > 0.8


def test_without_a_clear_difference_the_usual_weights_stay():
    same = judged(1.0, 1.0, 0.0)
    weights, moves = climb(Judged(same.scores[[0, 0, 2]], same.truth), USUAL, anything)
    assert moves == 0
    np.testing.assert_array_equal(weights, USUAL)


def test_memory_is_bounded_by_learning_from_a_part_of_the_corpus(monkeypatch):
    monkeypatch.setattr(module, "MOST_NUMBERS", 40_000)
    rows = affordable_rows(1000, 100, 4, np.random.default_rng(0))
    assert len(rows) == 100
    assert (np.diff(rows) > 0).all()
    corpus = random_sequences(0, number=200, groups=4)
    queries = random_sequences(1, number=24, groups=4).with_column("split", ["train"] * 24)
    small = {"vector": {"bank": 5}, "head": {"steps": 2}, "selection": None, "projection": {"hidden": 4}}
    trained = SelfAttention(**small).fit(queries, corpus)
    assert trained.network.size * 4 * 200 > 40_000
    assert np.isfinite(trained.embed(corpus)).all()


def test_crops_are_runs_of_events_of_the_wanted_length():
    sequences = random_sequences(3, number=50, longest=60)
    crops = random_crops(sequences, np.random.default_rng(0))
    assert (crops.lengths >= np.minimum(sequences.lengths, 3)).all()
    assert (crops.lengths >= np.floor(0.3 * sequences.lengths)).all()
    assert (crops.lengths < sequences.lengths).mean() > 0.5
    for crop, whole, offset in zip(crops, sequences, crops.column("offset").to_pylist(), strict=True):
        np.testing.assert_array_equal(crop.times, whole.times[offset : offset + len(crop)])


def test_the_card_says_what_was_chosen():
    corpus = random_sequences(0, number=200, groups=4)
    queries = random_sequences(1, number=60, groups=4).with_column("split", ["train"] * 60)
    small = {"vector": {"bank": 5}, "head": {"steps": 2}, "selection": {"steps": 2}, "projection": {"hidden": 4}}
    trained = SelfAttention(**small).fit(queries, corpus)
    notes = trained.card.notes["selection"]
    torch.testing.assert_close(torch.tensor(notes["weights"]), trained.network.metric.weights, atol=1e-3, rtol=0)
    assert notes["queries"] >= 20


def test_probabilities_of_groups_never_stand_alone():
    found, _ = climb(judged(0.0, 0.0, 2.0), USUAL, DEFAULT.projection.model_copy(update={"members": THREE}).possible)
    assert found[2] > 0.8
    assert found[:2].sum() > 0


def divisions(gain: float, noise: float, drawn: list[int], queries: int = 30):
    """Divisions of the data in which every query gains so much, and a number for each that was asked for."""
    rng = np.random.default_rng(0)
    for number in range(DIVISIONS):
        drawn.append(number)
        yield np.arange(queries) + 10 * number, rng.normal(gain, noise, queries)


def test_a_metric_has_to_be_better_than_histograms_by_more_than_noise():
    drawn: list[int] = []
    trusted, notes = trust(divisions(0.01, 0.2, drawn))
    assert not trusted
    assert drawn == list(range(DIVISIONS))
    assert notes["queries"] == 30 + 10 * (DIVISIONS - 1)  # a query of several divisions counts once
    assert trust(divisions(0.1, 0.2, []))[0]
    assert not trust(divisions(-0.1, 0.2, []))[0]


@pytest.mark.parametrize("gain", [-0.3, 0.3])
def test_what_is_clear_at_once_is_not_judged_again(gain):
    drawn: list[int] = []
    assert trust(divisions(gain, 0.1, drawn))[0] == (gain > 0)
    assert drawn == [0]


def test_plain_histograms_are_used_alone_or_not_at_all():
    alone = next(number for number, member in enumerate(DEFAULT.projection.members) if member.stands_alone)
    weights = np.array([member.weight for member in DEFAULT.projection.members])
    assert DEFAULT.projection.possible(weights)
    assert not DEFAULT.projection.possible(weights + np.eye(len(weights))[alone])


def test_with_many_small_groups_a_model_does_not_rank_below_its_own_features():
    data = simulate(groups=60, per_group=6, queries_per_group=2, marks=20, events=25, seed=6)
    learned = unseen_half(data.corpus)
    seen, unseen = np.flatnonzero(learned), np.flatnonzero(~learned)
    known = data.queries, data.corpus[seen], data.relevance.select_corpus(seen)
    model = SelfAttention(vector={"bank": 60}, head={"steps": 60}, selection={"steps": 60}).fit(*known)
    histogram, test = Histogram().fit(*known), split_rows(data.queries, "test")
    truth = data.relevance.select_corpus(unseen).select_queries(test)
    ours, plain = (
        average_precision(one.score(data.queries[test], data.corpus[unseen]), truth).mean()
        for one in (model, histogram)
    )
    assert model.card.notes["selection"]["weights"][-1] == 1
    assert ours == pytest.approx(plain)
