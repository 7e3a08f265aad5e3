"""Sets made of unlabelled sequences: what is relevant, what may touch, and what may not."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.subsequences import disjoint, overlapping
from neuroseqret.errors import DataError, UserError


def parents_of(lengths: list[int], **columns) -> EventSequences:
    rng = np.random.default_rng(len(lengths))
    events = [(np.cumsum(rng.exponential(size=n)), rng.integers(0, 3, n)) for n in lengths]
    ids = [f"p{i}" for i in range(len(lengths))]
    return EventSequences.from_lists(events, ids=ids, mark_names=["a", "b", "c"], time_unit="days", **columns)


def places(part: EventSequences) -> list[tuple[str, int, int]]:
    """(parent, first event, one past the last) of every row."""
    offsets = part.column("offset").to_numpy()
    return list(zip(part.column("parent").to_pylist(), offsets, offsets + part.lengths, strict=True))


def assert_runs_of(part: EventSequences, parents: EventSequences) -> None:
    row_of = {id_: row for row, id_ in enumerate(parents.ids.to_pylist())}
    for row, (parent, begin, stop) in zip(part, places(part), strict=True):
        whole = parents[row_of[parent]]
        assert np.array_equal(row.times, whole.times[begin:stop])
        assert np.array_equal(row.marks, whole.marks[begin:stop])


def test_the_paper_s_sets():
    parents = parents_of([300, 400, 500, 5, 350])
    corpus, queries = overlapping(parents, seed=3)
    assert sorted(queries.column("parent").to_pylist()) == ["p0", "p1", "p2", "p4"]  # exactly one a parent
    for part in (corpus, queries):
        part.validate()
        assert_runs_of(part, parents)
        assert part.groups.equals(part.column("parent"))
        assert part.lengths.min() >= 10
        assert part.lengths.max() <= 100
        assert (part.mark_names, part.time_unit) == (parents.mark_names, "days")
    sizes = Relevance.from_groups(queries, corpus).counts
    assert ((sizes >= 150) & (sizes <= 299)).all()  # |U_q| - 1, less a few runs drawn twice
    assert not set(places(corpus)) & set(places(queries))
    assert set(queries.column("split").to_pylist()) <= {"train", "validation", "test"}


def test_sizes_of_the_sets_are_uniform():
    parents = parents_of([2000] * 200)
    corpus, queries = overlapping(parents, number=(20, 30), events=(10, 90), seed=0)
    sizes = Relevance.from_groups(queries, corpus).counts + 1
    assert set(sizes) <= set(range(18, 31))
    assert abs(sizes.mean() - 25) < 1
    assert abs(corpus.lengths.mean() - 50) < 2


@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(0, 9))
def test_short_parents_give_what_they_have(lengths, seed):
    parents = parents_of(lengths)
    options = {"number": (3, 6), "events": (2, 4), "seed": seed}
    if max(lengths) <= 2:
        with pytest.raises(DataError, match="more than 2 events"):
            overlapping(parents, **options)
        return
    corpus, queries = overlapping(parents, **options)
    used = [id_ for id_, length in zip(parents.ids.to_pylist(), lengths, strict=True) if length > 2]
    assert sorted(queries.column("parent").to_pylist()) == used
    assert (Relevance.from_groups(queries, corpus).counts >= 1).all()
    both = places(corpus) + places(queries)
    assert len(set(both)) == len(both)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 7), st.sampled_from([0.1, 1 / 3, 0.5]))
def test_disjoint_sets_do_not_leak(lengths, events, share):
    parents = parents_of(lengths, validate=False)
    windows = [length // events for length in lengths]
    if max(windows) < 5:
        with pytest.raises(DataError, match="shorter windows"):
            disjoint(parents, events, share)
        return
    corpus, queries = disjoint(parents, events, share)
    assert_runs_of(corpus, parents)
    assert_runs_of(queries, parents)
    assert set(corpus.lengths) | set(queries.lengths) == {events}
    assert (Relevance.from_groups(queries, corpus).counts >= 3).all()
    taken: dict[str, list[tuple[int, int, str]]] = {}
    for part, side in ((corpus, "corpus"), (queries, "query")):
        for parent, begin, stop in places(part):
            taken.setdefault(parent, []).append((begin, stop, side))
    for parent, runs in taken.items():
        runs.sort()
        sides = [side for *_, side in runs]
        for (_, stop, side), (begin, _, next_side) in pairwise(runs):
            assert begin >= stop + (0 if side == next_side else events)  # a whole window between the sides
        if "query" in sides:
            assert sides == sorted(sides)  # corpus first, queries last
            whole = lengths[int(parent[1:])] // events
            assert sides.count("query") == min(max(round(whole * share), 1), whole - 4)
            assert len(sides) == whole - 1


def test_sources_stay_together_and_labels_are_kept():
    parents = parents_of([60] * 6, groups=list("xxyyzz"), metadata={"source": ["s0", "s0", "s1", "s1", "s2", "s2"]})
    corpus, queries = disjoint(parents, 5)
    assert set(corpus.column("source").to_pylist()) == {"s0", "s1", "s2"}
    assert set(corpus.column("parent_group").to_pylist()) == set("xyz")
    by_source: dict[str, set[str]] = {}
    for source, split in zip(queries.column("source").to_pylist(), queries.column("split").to_pylist(), strict=True):
        by_source.setdefault(source, set()).add(split)
    assert all(len(splits) == 1 for splits in by_source.values())
    corpus, _ = disjoint(parents.without_columns("source"), 5)
    assert corpus.column("source").equals(corpus.column("parent"))


@pytest.mark.parametrize(
    "make", [lambda p, s: overlapping(p, (5, 9), (3, 8), seed=s), lambda p, s: disjoint(p, 4, seed=s)]
)
def test_sets_are_functions_of_the_seed(make):
    parents = parents_of([40, 50, 60])
    assert make(parents, 1) == make(parents, 1)
    assert make(parents, 1) != make(parents, 2)


def test_impossible_parts_are_refused():
    parents = parents_of([3, 9])
    with pytest.raises(UserError, match=r"number is \(1, 5\); give a range \(low, high\) with 2 <= low"):
        overlapping(parents, number=(1, 5))
    with pytest.raises(UserError, match=r"events is \(9, 5\); give a range"):
        overlapping(parents, events=(9, 5))
    with pytest.raises(UserError, match="share between"):
        disjoint(parents, 3, query_share=1.0)
    with pytest.raises(DataError, match="no sequence has 10 events"):
        disjoint(parents, 10)
    with pytest.raises(DataError, match="5 windows of 3 events"):
        disjoint(parents, 3)
