"""The six point-process methods through the common interface: learning, ranking, saving, errors."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from naive.random_sequences import random_sequences
from neuroseqret import methods
from neuroseqret.baselines.point_process import PointProcessBaseline, by_length
from neuroseqret.baselines.rmtpp import RMTPP
from neuroseqret.data.batching import pad
from neuroseqret.data.gaps import TimeUnitWarning
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DivergenceError, UserError
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.training.loop import TrainingResult
from simulated import simulate_retrieval

PLAIN = ("rmtpp", "sahp", "thp")
RANKED = tuple(f"rank-{name}" for name in PLAIN)
GROUPS = 4


def labelled(seed: int, number: int, **columns: Any) -> EventSequences:
    """Groups that differ in their marks' frequencies and in rate; lengths 1 to 14."""
    rng = np.random.default_rng(seed)
    lists = []
    for i in range(number):
        length = 1 if i == 5 else int(rng.integers(6, 15))
        shares = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.34, 0.33, 0.33]])[i % GROUPS]
        gaps = rng.lognormal(0.5 * (i % GROUPS), 0.3, length)
        lists.append((np.cumsum(gaps), rng.choice(3, length, p=shares)))
    names = [f"s{seed}-{i}" for i in range(number)]
    return EventSequences.from_lists(
        lists, ids=names, **{"groups": [str(i % GROUPS) for i in range(number)], **columns}
    )


def queries_and_corpus() -> tuple[EventSequences, EventSequences]:
    splits = [("train", "train", "validation", "test")[i // GROUPS % 4] for i in range(64)]
    return labelled(0, 64, metadata={"split": splits}), labelled(1, 80)


def quality(model: PointProcessBaseline, queries: EventSequences, corpus: EventSequences) -> float:
    test = queries[np.array(queries.column("split").to_pylist()) == "test"]
    return mean_average_precision(model.score(test, corpus), Relevance.from_groups(test, corpus))


def made(name: str, steps: int) -> PointProcessBaseline:
    model = methods.make(name, steps=steps)
    assert isinstance(model, PointProcessBaseline)
    return model


@pytest.mark.parametrize("name", [*PLAIN, *RANKED])
def test_learns_embeds_and_keeps(name: str, tmp_path: Any) -> None:
    queries, corpus = queries_and_corpus()
    model = made(name, 12).fit(queries, corpus, seed=3)
    vectors = model.embed(corpus)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert model.score(queries[0], corpus).shape == (80,)
    assert quality(model, queries, corpus) > 0.4, "chance is about a quarter"
    losses = [record["loss"] for record in model.log.records]
    assert min(losses[1:]) < losses[0]

    loaded = methods.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(loaded.embed(corpus), vectors)  # type: ignore[attr-defined]
    assert loaded.card == model.to_state().card
    assert (tmp_path / "m" / "training.jsonl").exists()

    again = made(name, 12).fit(queries, corpus, seed=3)
    np.testing.assert_array_equal(again.embed(corpus), vectors)


@pytest.mark.parametrize("longest", [4, 30])
def test_parts_of_like_length_change_nothing(longest: int) -> None:
    """A batch gives the same likelihood and vectors whole and in parts, in the same order."""
    queries, corpus = queries_and_corpus()
    model = made("thp", 0).fit(queries, corpus)
    batch = pad(random_sequences(longest, 21, longest=longest))
    parts = by_length(batch)
    assert sorted(np.concatenate([p.rows for p in parts]).tolist()) == list(range(21))
    per_event, vectors = model.forward(batch)
    events = model.events(batch)
    network = model.network
    states = network.states(events)
    expected = network.log_likelihood(events, states).sum() / events.predicted.sum()
    torch.testing.assert_close(per_event, expected, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(vectors, network.pooled(events, states), rtol=1e-4, atol=1e-5)


def test_relevance_is_not_looked_at_without_rank() -> None:
    queries, corpus = queries_and_corpus()
    shuffled = np.random.default_rng(0).permutation([str(i % GROUPS) for i in range(64)]).tolist()
    one = made("rmtpp", 4).fit(queries, corpus).embed(corpus)
    other = made("rmtpp", 4).fit(queries.with_column("group", shuffled), corpus).embed(corpus)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["rmtpp", "rank-rmtpp"])
def test_test_queries_are_never_looked_at(name: str) -> None:
    queries, corpus = queries_and_corpus()
    seen = np.array(queries.column("split").to_pylist()) != "test"
    one = made(name, 4).fit(queries, corpus).embed(corpus)
    other = made(name, 4).fit(queries[seen], corpus).embed(corpus)
    np.testing.assert_array_equal(one, other)


def test_budget_of_seconds_ends_training_early() -> None:
    queries, corpus = queries_and_corpus()
    model = made("rank-rmtpp", 100_000).fit(queries, corpus, max_seconds=0.5)
    assert 0 < len(model.log.records) < 10_000
    assert model.log.records[-1]["rate"] < 0.2 * max(r["rate"] for r in model.log.records), "the schedule shrinks too"


@pytest.mark.parametrize("name", [*PLAIN, *RANKED])
def test_awkward_sequences_embed_finitely(name: str) -> None:
    queries, corpus = queries_and_corpus()
    model = made(name, 2).fit(queries, corpus)
    awkward = EventSequences.from_lists(
        [
            ([7.0], [0]),
            ([1.0] * 30, [1] * 30),
            ([0.0, 1e9], [2, 2]),
            (1.7e9 + np.arange(700) * 0.25, np.arange(700) % 7),  # long, on an epoch clock, with unknown marks
        ]
    )
    with pytest.warns(TimeUnitWarning, match="the typical gap between events is 500,000,000"):
        vectors = model.embed(awkward, unknown_marks="keep")
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for row in range(4):
        warned = pytest.warns(TimeUnitWarning, match="1,000,000,000") if row == 2 else nullcontext()
        with warned:
            alone = model.embed(awkward[row], unknown_marks="keep")
        np.testing.assert_allclose(alone[0], vectors[row], atol=1e-4)


@pytest.mark.parametrize("name", [*PLAIN, *RANKED])
def test_trains_on_single_events_and_ties_alone(name: str) -> None:
    columns = {"groups": [str(i % 2) for i in range(12)], "metadata": {"split": ["train", "train", "validation"] * 4}}
    single = EventSequences.from_lists([([3.0], [i % 2]) for i in range(12)], **columns)
    ties = EventSequences.from_lists(
        [([3.0] * 4, [i % 2] * 4) for i in range(12)], ids=[f"t{i}" for i in range(12)], **columns
    )
    for queries, corpus in ((single, ties), (ties, single)):
        model = made(name, 2).fit(queries, corpus)
        assert np.isfinite(model.score(queries, corpus)).all()


def test_no_validation_queries_keep_the_last_weights() -> None:
    queries, corpus = queries_and_corpus()
    for name in ("rmtpp", "rank-rmtpp"):
        model = made(name, 2).fit(queries.with_column("split", ["train"] * 64), corpus)
        assert model.card is not None
        assert model.card.validation == {}
        assert np.isfinite(model.embed(corpus)).all()


def test_without_labels_ranked_ones_learn_from_sub_sequences_and_plain_ones_from_the_likelihood() -> None:
    queries, corpus = queries_and_corpus()
    for given in (None, queries.without_columns("group")):
        with pytest.warns(UserWarning, match="sub-sequences of the corpus"):
            model = made("rank-rmtpp", 2).fit(given, corpus)
        assert model.card is not None
        assert model.card.unlabelled
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plain = made("rmtpp", 2).fit(given, corpus.without_columns("group"))
        assert plain.card is not None
        assert not plain.card.unlabelled


def test_user_errors(tmp_path: Any) -> None:
    queries, corpus = queries_and_corpus()
    with pytest.raises(UserError, match="not trained"):
        made("thp", 2).embed(corpus)
    with pytest.raises(UserError, match="corpus is empty"):
        made("thp", 2).fit(queries, corpus[:0])
    with pytest.raises(UserError, match="no train query"):
        made("rank-rmtpp", 2).fit(queries.with_column("split", ["test"] * 64), corpus)
    folder = made("rmtpp", 2).fit(queries, corpus).save(tmp_path / "m")
    with pytest.raises(UserError, match="not 'thp'"):
        methods.method_class("thp").load(folder)
    (folder / "model.safetensors").write_bytes(b"x")
    with pytest.raises(UserError, match="truncated or changed"):
        methods.load(folder)


def test_lengths_one_to_twelve_are_all_ranked() -> None:
    corpus = random_sequences(1, 20, groups=2)
    queries = random_sequences(2, 12, groups=2).with_column("split", ["train", "validation"] * 6)
    scores = made("rank-thp", 3).fit(queries, corpus).score(queries, corpus)
    assert scores.shape == (12, 20)
    assert np.isfinite(scores).all()


def test_training_that_diverges_begins_again_at_a_lower_rate(monkeypatch):
    rates = []

    def breaks_once(network, loss, settings, **_):
        rates.append(settings.learning_rate)
        if len(rates) == 1:
            raise DivergenceError("the loss rose")
        return TrainingResult(1, 0.0, None)

    monkeypatch.setattr("neuroseqret.baselines.point_process.train", breaks_once)
    queries, corpus = simulate_retrieval(groups=2, per_group=3, queries_per_group=3)
    model = RMTPP(learning_rate=0.3).fit(queries, corpus)
    assert rates == pytest.approx([0.3, 0.1])
    assert model.card.notes == {"learning_rate": pytest.approx(0.1)}
    assert model.card.settings["learning_rate"] == 0.3

    monkeypatch.setattr("neuroseqret.baselines.point_process.SLOWER", (1,))
    rates.clear()
    with pytest.raises(DivergenceError, match="rose"):
        RMTPP().fit(queries, corpus)
