"""The numbers of a batch, against loops and against what the real sets say of themselves."""

from __future__ import annotations

import json
from statistics import median

import numpy as np
import pytest
from hypothesis import given

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.statistics import describe, describe_retrieval, length_histogram
from simulated import simulate_retrieval
from strategies import event_sequences


@given(event_sequences(min_events=0, metadata=("source",)))
def test_numbers_equal_those_of_a_loop(batch):
    made = describe(batch)
    lengths = [len(row) for row in batch]
    gaps = [b - a for row in batch for a, b in zip(row.times, row.times[1:], strict=False)]
    names = batch.mark_names or [str(i) for i in range(batch.num_marks)]
    marks = [names[mark] for row in batch for mark in row.marks]
    assert (made.sequences, made.events, made.marks) == (len(lengths), sum(lengths), batch.num_marks)
    assert made.sources == len({row.metadata["source"] for row in batch} - {None})
    assert made.groups == (None if batch.groups is None else len({row.group for row in batch} - {None}))
    if lengths:
        assert (made.length_min, made.length_median, made.length_max) == (min(lengths), median(lengths), max(lengths))
    assert sum(made.lengths.counts) == len(lengths)
    assert {name: count for name, count in made.mark_counts.items() if count} == {m: marks.count(m) for m in marks}
    if batch.mark_names is not None:
        assert list(made.mark_counts) == list(batch.mark_names)
    if gaps:
        assert made.zero_gaps == pytest.approx(sum(gap == 0 for gap in gaps) / len(gaps))
        assert (made.gap_quantiles[0.0], made.gap_quantiles[1.0]) == (min(gaps), max(gaps))
        assert made.gap_quantiles[0.5] == pytest.approx(median(gaps))
    else:
        assert (made.gap_quantiles, made.gap_mean, made.zero_gaps) == ({}, None, None)
    times = [t for row in batch for t in row.times]
    assert (made.first_time, made.last_time) == ((min(times), max(times)) if times else (None, None))
    assert {flaw.kind for flaw in made.flaws} == ({"empty sequence"} if 0 in lengths else set())


def test_flawed_data_are_described_too():
    batch = EventSequences.from_lists(
        [([0, np.nan, 2], [0, -1, 7]), ([], []), ([5, 4], [0, 1])],
        ids=["a", "a", "b"],
        mark_names=["x", "y"],
        validate=False,
    )
    made = describe(batch)
    kinds = {flaw.kind: flaw.count for flaw in made.flaws}
    assert kinds == {
        "time not finite": 1,
        "time decreases": 1,
        "empty mark": 1,
        "mark out of range": 1,
        "empty sequence": 1,
        "duplicate id": 1,
    }
    assert made.mark_counts == {"x": 2, "y": 1, "-1": 1, "7": 1}
    assert (made.first_time, made.last_time) == (0, 5)


@pytest.mark.parametrize("lengths", [[50] * 9, [1, 2, 3], list(range(10, 226)), [1, 1, 1000], [7]])
def test_the_histogram_holds_every_length_once(lengths):
    made = length_histogram(np.array(lengths))
    assert sum(made.counts) == len(lengths)
    assert len(made.counts) <= 12
    assert len(made.edges) == len(made.counts) + 1
    assert made.edges[0] == min(lengths)
    assert made.counts[-1] > 0
    for low, high, count in zip(made.edges, made.edges[1:], made.counts, strict=False):
        assert count == sum(low <= length < high for length in lengths)


def test_a_retrieval_set_is_described():
    corpus, queries = simulate_retrieval(4, 6, 4, events=20, seed=1)
    counts = describe_retrieval(corpus, queries).counts()
    assert (counts["corpus"], counts["queries"], counts["groups"], counts["groups_with_queries"]) == (24, 16, 4, 4)
    assert counts["relevant_per_query_mean"] == 6
    assert counts["largest_group_share"] == 0.25
    assert sum(counts["queries_by_split"].values()) == 16
    unlabelled = describe_retrieval(corpus.without_columns("group"), queries)
    assert unlabelled.relevant_per_query_mean is None


@pytest.mark.parametrize(
    "name", ["amazon", "audio", "celebrity", "electricity", "health", "soccer", "sports", "twitter"]
)
def test_real_sets_have_the_numbers_that_they_say(shared_data, name):
    import pyarrow.parquet as pq

    meta = json.loads((shared_data / name / "meta.json").read_text())
    corpus, queries = (
        EventSequences.from_arrow(
            pq.read_table(shared_data / name / f"{part}.parquet"), mark_names=meta["mark_names"], validate=False
        )
        for part in ("corpus", "queries")
    )
    made = describe_retrieval(corpus, queries)
    said = {key: value for key, value in meta["counts"].items() if key != "exact_duplicates_dropped"}
    assert made.counts() == said
    assert made.everything.flaws == ()
    assert made.queries_without_relevant == 0
    assert sum(made.everything.mark_counts.values()) == said["events"]


def test_columns_that_mean_something_else():
    lists = EventSequences.from_lists(
        [([0.0, 1.0], [0, 0])], metadata={"source": [["web", "app"]], "split": [["a", "b"]]}
    )
    made = describe(lists)
    assert (made.sources, made.splits) == (None, {})
    corpus = EventSequences.from_lists([([0.0], [0])], ids=["c"], metadata={"x": [1]})
    queries = EventSequences.from_lists([([0.0], [0])], ids=["q"], metadata={"x": ["one"]})
    assert describe_retrieval(corpus, queries).everything.sequences == 2


def test_infinite_times_are_described_without_a_warning(recwarn):
    bad = EventSequences.from_lists([([np.inf, np.inf], [0, 0]), ([1.0, 3.0], [0, 0])], validate=False)
    assert describe(bad).span_median == 2
    assert not recwarn.list
