from __future__ import annotations

import numpy as np
import pytest

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.training.sampling import PairSampler


def toy(groups: list[str], **columns) -> EventSequences:
    return EventSequences.from_lists([([0.0], [0])] * len(groups), groups=groups, **columns)


CORPUS = toy(list("aaabbbcccc"))
QUERIES = toy(list("abcab"))
BY_GROUP = Relevance.from_groups(QUERIES, CORPUS)
BY_QRELS = Relevance(BY_GROUP.offsets, BY_GROUP.rows, BY_GROUP.corpus_size)


@pytest.mark.parametrize("relevance", [BY_GROUP, BY_QRELS], ids=["groups", "qrels"])
def test_positives_are_the_relevant_ones(relevance):
    sampler = PairSampler(relevance, np.array([0, 1]), size=8, seed=3)
    truth = BY_GROUP.matrix()
    for step in range(20):
        batch = sampler.batch(step)
        assert batch.positive.shape == (8, 8)
        assert set(batch.queries) <= {0, 1}
        np.testing.assert_array_equal(batch.positive[: len(batch.queries)], truth[batch.queries][:, batch.corpus])
        same = BY_GROUP.labels[batch.pseudo][:, None] == BY_GROUP.labels[batch.corpus]
        np.testing.assert_array_equal(batch.positive[len(batch.queries) :], same)
        np.testing.assert_array_equal(batch.ignore[len(batch.queries) :], batch.pseudo[:, None] == batch.corpus)
        assert batch.positive[np.arange(8), np.arange(8)].all()  # every anchor has its own positive


def test_no_sequence_of_a_group_without_train_query_is_drawn():
    sampler = PairSampler(BY_GROUP, np.array([0, 1]), size=16, pseudo_from="train")
    drawn = np.concatenate([np.concatenate([b.corpus, b.pseudo]) for b in map(sampler.batch, range(30))])
    assert set(BY_GROUP.labels[drawn]) == {BY_GROUP.query_labels[0], BY_GROUP.query_labels[1]}


def test_a_batch_is_a_function_of_seed_and_step():
    one, same, other = (PairSampler(BY_GROUP, np.arange(3), size=8, seed=s) for s in (1, 1, 2))
    one.batch(0)
    for name in ("queries", "pseudo", "corpus", "positive", "ignore"):
        np.testing.assert_array_equal(getattr(one.batch(5), name), getattr(same.batch(5), name))
    assert any((one.batch(k).corpus != other.batch(k).corpus).any() for k in range(3))


def test_pseudo_queries_of_the_whole_corpus_come_from_any_group():
    sampler = PairSampler(BY_GROUP, np.array([0]), size=16, pseudo_from="corpus")
    batches = [sampler.batch(step) for step in range(20)]
    assert set(BY_GROUP.labels[np.concatenate([b.pseudo for b in batches])]) == {0, 1, 2}
    assert set(np.concatenate([b.queries for b in batches])) == {0}


def test_where_no_two_corpus_sequences_belong_together_all_anchors_are_queries():
    alone = Relevance.from_groups(toy(list("abc")), toy(list("abc")))
    batch = PairSampler(alone, np.arange(3), size=8).batch(0)
    assert len(batch.pseudo) == 0
    assert batch.positive.shape == (len(batch.queries), len(batch.corpus))
    assert len(batch.queries) > 0


def test_nothing_relevant_is_one_clear_error():
    with pytest.raises(UserError, match="no train query has a relevant corpus sequence"):
        PairSampler(Relevance.from_groups(toy(["z"]), CORPUS), np.array([0]))


@pytest.mark.parametrize("relevance", [BY_GROUP, BY_QRELS], ids=["groups", "qrels"])
def test_every_anchor_gets_its_negatives_and_no_more_are_drawn_than_it_takes(relevance):
    sampler = PairSampler(relevance, np.arange(3), size=4, pseudo_share=0.0, negatives=3)
    for step in range(20):
        batch = sampler.batch(step)
        further = batch.positive[:, 4:]
        np.testing.assert_array_equal(further, BY_GROUP.matrix()[batch.queries][:, batch.corpus[4:]])
        assert len(set(batch.corpus[4:])) == further.shape[1]
        assert (~further).sum(1).min() == 3
        assert (~further[:, :-1]).sum(1).min() == 2


@pytest.mark.parametrize("relevance", [BY_GROUP, BY_QRELS], ids=["groups", "qrels"])
def test_rows_outside_a_set_are_never_in_it(relevance):
    sampler = PairSampler(relevance, np.arange(3), size=4, pseudo_share=0.0)
    batch = sampler.batch(0)
    drawn = sampler.outside(batch.sets, 50, np.random.default_rng(0))
    inside = BY_GROUP.matrix()[batch.queries]
    assert drawn.shape == (4, 50)
    for k in range(4):
        assert not inside[k, drawn[k]].any()
        assert set(drawn[k]) == set(np.flatnonzero(~inside[k]))


def test_a_small_corpus_gives_all_that_it_has():
    batch = PairSampler(BY_GROUP, np.arange(3), size=4, pseudo_share=0.0, negatives=100).batch(0)
    assert set(batch.corpus[4:]) == set(range(len(CORPUS)))
