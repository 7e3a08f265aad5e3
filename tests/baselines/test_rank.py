"""The ranking wrapper: its loss equals a loop, labels improve the ranking, random labels do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from neuroseqret.baselines.rank import LIKELIHOOD, MARGIN, RankRMTPP
from neuroseqret.baselines.rmtpp import RMTPP
from neuroseqret.data.batching import pad
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.splits import split_rows
from neuroseqret.measures.ranking_measures import mean_average_precision
from neuroseqret.training.sampling import PairSampler
from neuroseqret.training.task import TrainingTask


def hidden_signal(seed: int, number: int, labels: np.ndarray) -> EventSequences:
    """The label decides the mark of one event; all other events vary from sequence to sequence."""
    rng = np.random.default_rng(seed)
    lists = []
    for label in labels:
        marks = rng.choice(np.arange(2, 6), 12, p=rng.dirichlet(np.full(4, 0.5)))
        marks[rng.integers(12)] = label
        lists.append((np.cumsum(rng.lognormal(rng.normal(0, 1), 1, 12)), marks))
    ids = [f"s{seed}-{i}" for i in range(number)]
    splits = [("train", "train", "validation", "test")[i % 4] for i in range(number)]
    return EventSequences.from_lists(lists, ids=ids, groups=[str(x) for x in labels], metadata={"split": splits})


@pytest.fixture
def task() -> tuple[EventSequences, EventSequences]:
    rng = np.random.default_rng(0)
    return hidden_signal(1, 80, rng.integers(0, 2, 80)), hidden_signal(2, 100, rng.integers(0, 2, 100))


def test_map(model: RMTPP, queries: EventSequences, corpus: EventSequences) -> float:
    test = queries[split_rows(queries, "test")]
    return mean_average_precision(model.score(test, corpus), Relevance.from_groups(test, corpus))


test_map.__test__ = False  # type: ignore[attr-defined]


def test_loss_equals_a_loop_over_pairs(task: tuple[EventSequences, EventSequences]) -> None:
    queries, corpus = task
    model = RankRMTPP(steps=0).fit(queries, corpus)
    relevance = Relevance.from_groups(queries, corpus)
    train = split_rows(queries, "train")
    found = model.loss(TrainingTask.of(queries, corpus, relevance, needs_labels=True))(7)

    pairs = PairSampler(relevance, train, size=32, seed=0).batch(7)
    anchors = np.concatenate([model.embed(queries[pairs.queries]), model.embed(corpus[pairs.pseudo])])
    candidates = model.embed(corpus[pairs.corpus])
    active = []
    for a, anchor in enumerate(anchors):
        for plus in np.flatnonzero(pairs.positive[a] & ~pairs.ignore[a]):
            for minus in np.flatnonzero(~pairs.positive[a] & ~pairs.ignore[a]):
                active.append(max(0.0, MARGIN + anchor @ candidates[minus] - anchor @ candidates[plus]))
    log_likelihood, number = 0.0, 0
    for sequences, rows in ((queries, pairs.queries), (corpus, pairs.pseudo), (corpus, pairs.corpus)):
        events = model.events(pad(sequences, rows))
        with torch.no_grad():
            log_likelihood += float(model.network.log_likelihood(events).sum())
        number += int(events.predicted.sum())
    expected = np.mean([x for x in active if x > 0]) - LIKELIHOOD * log_likelihood / number
    assert float(found.detach()) == pytest.approx(expected, rel=1e-4)


def test_labels_teach_and_random_labels_do_not(task: tuple[EventSequences, EventSequences]) -> None:
    queries, corpus = task
    chance = np.mean([str(g) == "0" for g in corpus.groups.to_pylist()])
    chance = chance**2 + (1 - chance) ** 2
    plain = test_map(RMTPP(60).fit(queries, corpus), queries, corpus)
    ranked = test_map(RankRMTPP(60).fit(queries, corpus), queries, corpus)
    assert ranked > plain + 0.1
    rng = np.random.default_rng(1)
    scrambled = [
        part.with_column("group", rng.permutation(part.groups.to_pylist()).tolist()) for part in (queries, corpus)
    ]
    assert abs(test_map(RankRMTPP(60).fit(*scrambled), *scrambled) - chance) < 0.1
