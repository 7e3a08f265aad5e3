"""Divisions keep sources whole, groups balanced, and negatives not relevant."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.relevance import relevant_rows, side_by_side, sources_of
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.splits import (
    SPLITS,
    choose_queries,
    ensure_split,
    sample_negatives,
    split_queries,
    split_rows,
    unseen_half,
)
from neuroseqret.errors import DataError, UserError
from strategies import PLAIN_IDS, event_sequences

SETS = ("health", "sports", "celebrity", "soccer")
OPTIONS = {"max_events": 1, "windows": False, "named": False, "views": False, "ids": PLAIN_IDS}
batches = event_sequences(max_sequences=12, groups=True, metadata=("source",), **OPTIONS)


def labelled(groups, sources=None) -> EventSequences:
    metadata = {} if sources is None else {"source": list(map(str, sources))}
    return EventSequences.from_lists(
        [([0], [0])] * len(groups), groups=list(map(str, groups)), metadata=metadata, validate=False
    )


def real(folder, name: str, part: str) -> EventSequences:
    return EventSequences.from_arrow(pq.read_table(folder / name / f"{part}.parquet"), validate=False)


# -------------------------------------------------------------------- train, validation, test


@given(batches, st.integers(0, 5))
def test_a_source_is_in_one_split_and_nothing_else_changes(queries, seed):
    split = split_queries(queries, seed)
    sides = split.column("split").to_pylist()
    assert all(len(found) == 1 for found in side_by_side(queries, sides).values())
    assert set(sides) <= set(SPLITS)
    assert split.without_columns("split") == queries.without_columns("split")
    assert split == split_queries(queries, seed)
    if len(set(sources_of(queries))) >= 3:
        assert set(sides) == set(SPLITS)


@pytest.mark.parametrize("seed", range(3))
def test_shares_are_exact_where_sources_are_single(seed):
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 30, 1000)
    sides = np.array(split_queries(labelled(groups), seed).column("split").to_pylist())
    counts = Counter(sides)
    assert abs(counts["train"] - 500) <= 2
    assert abs(counts["validation"] - 100) <= 2
    for group in range(30):
        size = (groups == group).sum()
        for side, share in zip(SPLITS, (0.5, 0.1, 0.4), strict=True):
            assert abs((sides[groups == group] == side).sum() - share * size) <= 2.5


def test_groups_of_one_query_are_shared_out_too():
    counts = Counter(split_queries(labelled(range(200))).column("split").to_pylist())
    assert abs(counts["train"] - 100) <= 2
    assert abs(counts["validation"] - 20) <= 2


def test_seeds_differ():
    queries = labelled(np.arange(100) % 7)
    assert split_queries(queries, 0) != split_queries(queries, 1)


@pytest.mark.parametrize("name", SETS)
def test_real_queries_split_near_their_shares(shared_data, name):
    queries = real(shared_data, name, "queries")
    split = split_queries(queries, seed=1)
    sides = split.column("split").to_pylist()
    sources = queries.column("source").to_pylist()
    assert len(set(zip(sources, sides, strict=True))) == len(set(sources))
    counts, number = Counter(sides), len(queries)
    largest = max(Counter(sources).values())
    for side, share in zip(SPLITS, (0.5, 0.1, 0.4), strict=True):
        assert abs(counts[side] - share * number) <= max(0.01 * number, largest)


def test_impossible_shares_are_refused():
    for shares in ((0.5, 0.5), (0.5, 0.6, 0.1), (1.2, -0.2, 0)):
        with pytest.raises(UserError, match="must sum to 1"):
            split_queries(labelled([1, 2, 3]), shares=shares)
    two = split_queries(labelled(range(10)), shares=(0.5, 0, 0.5)).column("split").to_pylist()
    assert set(two) == {"train", "test"}


def test_a_given_split_is_kept_and_read():
    queries = labelled([1, 2, 3]).with_column("split", ["test", "train", "test"])
    assert ensure_split(queries) is queries
    assert split_rows(queries, "test").tolist() == [0, 2]
    with pytest.raises(DataError, match=r"no query has split 'validation'.*test, train"):
        split_rows(queries, "validation")
    with pytest.raises(DataError, match="no column 'split'"):
        split_rows(labelled([1]), "train")
    assert ensure_split(labelled([1, 2, 3]), 4) == split_queries(labelled([1, 2, 3]), 4)


# -------------------------------------------------------------------- queries out of one set


@given(batches, st.sampled_from([0.1, 0.3, 0.5]), st.integers(0, 3), st.integers(1, 3))
def test_queries_come_from_other_sources_than_their_answers(sequences, share, seed, min_corpus):
    chosen = choose_queries(sequences, share, seed, min_corpus)
    sources, groups = sources_of(sequences), [row.group for row in sequences]
    for group in set(groups):
        rows = [i for i, g in enumerate(groups) if g == group]
        asked, kept = ([sources[i] for i in rows if chosen[i] == side] for side in (True, False))
        assert not set(asked) & set(kept)
        if asked:
            assert group is not None
            assert len(kept) >= min_corpus
        elif group is not None:
            # No query, then no source could be spared.
            sizes = Counter(kept)
            assert all(len(kept) - size < min_corpus for size in sizes.values())


def test_about_the_share_is_chosen():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 100)
    chosen = choose_queries(labelled(groups, rng.integers(0, 400, 2000)), 0.2, seed=1)
    for group in range(20):
        assert abs(chosen[groups == group].mean() - 0.2) < 0.03
    assert not choose_queries(labelled(groups, groups), 0.2).any()  # one source each: all distractors
    with pytest.raises(UserError, match="between 0 and 1"):
        choose_queries(labelled(groups), 1.0)


# -------------------------------------------------------------------- unseen half


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=30), st.integers(0, 5))
def test_halves_keep_sources_whole_unless_a_group_has_but_one(rows, seed):
    groups, sources = [g for g, _ in rows], [s for _, s in rows]
    seen = unseen_half(labelled(groups, sources), seed)
    assert seen.shape == (len(rows),)
    for source in set(sources):
        served = {g for g, s in rows if s == source}
        alone = len(served) == 1 and all(s == source for g, s in rows if g in served)
        if not alone:
            assert len({bool(seen[i]) for i, (_, s) in enumerate(rows) if s == source}) == 1
    assert np.array_equal(seen, unseen_half(labelled(groups, sources), seed))


def test_a_group_with_one_source_of_its_own_is_halved_by_rows():
    groups = np.repeat([0, 1, 2], 20)
    seen = unseen_half(labelled(groups, groups), seed=1)
    assert [int(seen[groups == g].sum()) for g in range(3)] == [10, 10, 10]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=30), st.integers(0, 5))
def test_groups_with_own_sources_have_both_sides(rows, seed):
    groups = [group for group, _ in rows]
    sources = [f"{group}/{source}" for group, source in rows]
    seen = unseen_half(labelled(groups, sources), seed)
    for group in set(groups):
        own = [i for i, g in enumerate(groups) if g == group]
        if len({sources[i] for i in own}) > 1:
            assert len(set(seen[own])) == 2


@pytest.mark.parametrize("name", SETS)
def test_real_corpora_are_halved(shared_data, name):
    corpus = real(shared_data, name, "corpus")
    seen = unseen_half(corpus, seed=2)
    assert abs(seen.mean() - 0.5) < 0.02
    sources = np.unique(corpus.column("source").to_pylist(), return_inverse=True)[1]
    labels = Relevance.from_groups(corpus[:1], corpus).labels
    number_of_sources = np.bincount(np.unique(np.stack([labels, sources]), axis=1)[0])
    several = (number_of_sources > 1)[labels]
    assert not set(sources[seen & several]) & set(sources[~seen & several])
    seen_share = np.bincount(labels, seen) / np.bincount(labels)
    assert ((seen_share > 0) & (seen_share < 1)).all()


def test_sources_shared_by_groups_are_moved_as_far_as_possible():
    # Four groups on a path of sources: both sides for each group need an alternating colouring.
    groups, sources = [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 1, 2, 2, 3, 3, 4]
    for seed in range(10):
        seen = unseen_half(labelled(groups, sources), seed)
        assert all(len(set(seen[[2 * g, 2 * g + 1]])) == 2 for g in range(4))


# -------------------------------------------------------------------- negatives

grouped = event_sequences(min_sequences=2, max_sequences=9, groups=True, metadata=False, **OPTIONS)


@given(grouped, grouped, st.integers(0, 12), st.booleans(), st.integers(0, 9))
def test_negatives_are_never_relevant(queries, corpus, number, replace, seed):
    relevance = Relevance.from_groups(queries, corpus)
    free = [len(corpus) - len(rows) for rows in relevant_rows(queries, corpus)]
    everyone, rng = np.arange(len(queries)), np.random.default_rng(seed)
    if number and min(free) < (1 if replace else number):
        with pytest.raises(UserError, match=f"has only {min(free)} non-relevant"):
            sample_negatives(relevance, everyone, number, rng, replace)
        return
    drawn = sample_negatives(relevance, everyone, number, rng, replace)
    assert drawn.shape == (len(queries), number)
    for row, relevant in zip(drawn, relevant_rows(queries, corpus), strict=True):
        assert not set(row) & set(relevant)
        assert set(row) <= set(range(len(corpus)))
        assert replace or len(set(row)) == number


@pytest.mark.parametrize(("number", "replace"), [(1, False), (3, False), (6, False), (7, False), (3, True)])
def test_every_negative_is_as_likely(number, replace):
    corpus = labelled([0, 1, 0, 2, 2, 0, 1, 1, 2, 1])
    relevance = Relevance.from_groups(labelled([0]), corpus)
    rng, rounds = np.random.default_rng(0), 4000
    drawn = sample_negatives(relevance, np.zeros(rounds, np.int64), number, rng, replace)
    counts = np.bincount(drawn.ravel(), minlength=10)
    assert counts[[0, 2, 5]].sum() == 0
    expected = rounds * number / 7
    others = counts[[1, 3, 4, 6, 7, 8, 9]]
    assert np.abs(others - expected).max() < 5 * np.sqrt(expected)
    for place in range(number):  # and none prefers a place in the row
        at_place = np.bincount(drawn[:, place], minlength=10)[[1, 3, 4, 6, 7, 8, 9]]
        assert np.abs(at_place - rounds / 7).max() < 5 * np.sqrt(rounds / 7)


def test_one_query_gets_one_row():
    relevance = Relevance.from_groups(labelled([0, 1]), labelled([0, 1, 1]))
    assert sample_negatives(relevance, 1, 1, np.random.default_rng(0)).tolist() == [0]
    assert sample_negatives(relevance, np.array([1]), 1, np.random.default_rng(0)).tolist() == [[0]]


def test_negatives_of_a_real_set(shared_data):
    queries, corpus = real(shared_data, "sports", "queries"), real(shared_data, "sports", "corpus")
    relevance = Relevance.from_groups(queries, corpus)
    drawn = sample_negatives(relevance, np.arange(len(queries)), 500, np.random.default_rng(0))
    assert not np.take_along_axis(relevance.matrix(), drawn, 1).any()
    assert all(len(set(row)) == 500 for row in drawn)
