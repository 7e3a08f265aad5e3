"""Relevance against a comparison of all with all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.relevance import relevant_rows
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from strategies import PLAIN_IDS, event_sequences

batches = event_sequences(groups=True, max_events=2, windows=False, metadata=False, named=False, ids=PLAIN_IDS)


def rows_of(relevance: Relevance) -> list[list[int]]:
    return [relevance.of(query).tolist() for query in range(len(relevance))]


def labelled(groups: list[str | None], name: str = "s") -> EventSequences:
    return EventSequences.from_lists(
        [([0], [0])] * len(groups), ids=[f"{name}{i}" for i in range(len(groups))], groups=groups
    )


@given(batches, batches)
def test_groups_equal_the_comparison_of_all_with_all(queries, corpus):
    relevance = Relevance.from_groups(queries, corpus)
    wanted = relevant_rows(queries, corpus)
    assert rows_of(relevance) == wanted
    assert relevance.counts.tolist() == [len(rows) for rows in wanted]
    dense = relevance.matrix()
    assert dense.shape == (len(queries), len(corpus))
    assert [np.flatnonzero(row).tolist() for row in dense] == wanted
    assert relevance.labels is not None
    assert relevance.query_labels is not None
    for query, label in enumerate(relevance.query_labels):
        if label >= 0:
            assert np.flatnonzero(relevance.labels == label).tolist() == wanted[query]


@given(batches, batches, st.integers(0, 5))
def test_queries_that_follow_others_keep_their_answers(queries, corpus, first):
    whole = Relevance.from_groups(queries, corpus)
    before, after = whole.select_queries(np.arange(len(queries))[:first]), np.arange(len(queries))[first:]
    both = before.followed_by(whole.select_queries(after))
    assert rows_of(both) == rows_of(whole)
    assert both.query_labels.tolist() == whole.query_labels.tolist()
    without_labels = before.followed_by(Relevance.of_table(whole.matrix(after)))
    assert rows_of(without_labels) == rows_of(whole)
    assert without_labels.labels is without_labels.query_labels is None


@given(batches, batches, st.data())
def test_selections_equal_the_relevance_of_the_selected(queries, corpus, data):
    relevance = Relevance.from_groups(queries, corpus)
    some_queries = np.array(data.draw(st.lists(st.booleans(), min_size=len(queries), max_size=len(queries))), bool)
    some_corpus = np.array(data.draw(st.permutations(range(len(corpus)))), np.int64)[
        : data.draw(st.integers(0, len(corpus)))
    ]
    part = relevance.select_queries(some_queries)
    assert rows_of(part) == relevant_rows(queries[some_queries], corpus)
    assert rows_of(relevance.select_corpus(some_corpus)) == relevant_rows(queries, corpus[some_corpus])
    both = part.select_corpus(some_corpus)
    assert rows_of(both) == relevant_rows(queries[some_queries], corpus[some_corpus])
    assert both.labels.tolist() == relevance.labels[some_corpus].tolist()
    assert both.query_labels.tolist() == relevance.query_labels[some_queries].tolist()
    assert np.array_equal(relevance.matrix(np.flatnonzero(some_queries)), part.matrix())


@given(batches, batches)
def test_qrels_of_the_groups_say_the_same(queries, corpus):
    ids = corpus.ids.to_pylist()
    qrels = {
        query: {ids[row]: 1 for row in rows}
        for query, rows in zip(queries.ids.to_pylist(), relevant_rows(queries, corpus), strict=True)
    }
    relevance = Relevance.from_qrels(queries, corpus, qrels)
    assert rows_of(relevance) == relevant_rows(queries, corpus)
    assert relevance.labels is None
    assert relevance.query_labels is None


def test_qrels_overrule_groups_and_grades_below_one_are_not_relevant():
    queries, corpus = labelled(["x", "y"], "q"), labelled(["x", "y", "z"], "c")
    relevance = Relevance.from_qrels(queries, corpus, {"q0": {"c2": 2, "c1": 1, "c0": 0}})
    assert rows_of(relevance) == [[1, 2], []]


def test_what_cannot_be_judged_is_refused():
    queries, corpus = labelled(["x"], "q"), labelled(["x"], "c")
    with pytest.raises(DataError, match="the corpus has no groups"):
        Relevance.from_groups(queries, corpus.without_columns("group"))
    with pytest.raises(DataError, match="queries have no groups"):
        Relevance.from_groups(queries.without_columns("group"), corpus)
    with pytest.raises(DataError, match=r"'other'.*not among the queries"):
        Relevance.from_qrels(queries, corpus, {"other": {"c0": 1}})
    for grade in (0, 1):
        with pytest.raises(DataError, match=r"query 'q0' contain 'c9'.*not in the corpus"):
            Relevance.from_qrels(queries, corpus, {"q0": {"c9": grade}})


def test_a_sequence_without_group_is_relevant_to_nothing():
    relevance = Relevance.from_groups(labelled([None, "x"]), labelled([None, "x", None]))
    assert rows_of(relevance) == [[], [1]]
    assert relevance.query_labels.tolist()[0] == -1


def test_real_sets_have_the_relevance_that_they_say(shared_data):
    import json

    import pyarrow.parquet as pq

    for name in ("health", "sports", "celebrity"):
        corpus, queries = (
            EventSequences.from_arrow(pq.read_table(shared_data / name / f"{part}.parquet"), validate=False)
            for part in ("corpus", "queries")
        )
        counts = json.loads((shared_data / name / "meta.json").read_text())["counts"]
        assert round(Relevance.from_groups(queries, corpus).counts.mean(), 2) == counts["relevant_per_query_mean"]


def test_one_query_is_asked_like_many():
    corpus = EventSequences.from_lists([([0.0], [0])] * 3, ids=["a", "b", "c"], groups=["x", "y", "x"])
    queries = EventSequences.from_lists([([0.0], [0])], ids=["q"], groups=["x"])
    for many, one in (
        (Relevance.from_groups(queries, corpus), Relevance.from_groups(queries[0], corpus)),
        (
            Relevance.from_qrels(queries, corpus, {"q": {"b": 1}}),
            Relevance.from_qrels(queries[0], corpus, {"q": {"b": 1}}),
        ),
    ):
        assert one.fingerprint() == many.fingerprint()
    assert EventSequences.concat([corpus, queries[0]]).ids.to_pylist() == ["a", "b", "c", "q"]


def test_the_repr_tells_the_size():
    relevance = Relevance.from_groups(labelled(["a", "b"], "q"), labelled(["a", "a", "b"]))
    assert repr(relevance) == "Relevance(2 queries, 3 corpus sequences, 1.5 relevant per query)"
