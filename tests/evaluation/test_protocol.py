"""The task: the same lists for every method, no leak between the halves, and every left-out query is counted."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import SETS
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.evaluation.protocol import make_task


def ids(sequences: EventSequences) -> list[str]:
    return sequences.ids.to_pylist()


def test_full_and_seen_is_the_data_itself(sets):
    queries, corpus = sets()
    task = make_task(queries, corpus)
    assert task.corpus is task.training_corpus is corpus
    assert set(task.queries.column("split").to_pylist()) == {"test"}
    assert len(task.queries) == 12
    assert (task.candidates == len(corpus)).all()
    for query, group in enumerate(task.queries.groups.to_pylist()):
        assert set(corpus[task.relevance.of(query)].groups.to_pylist()) == {group}
        assert task.relevance.counts[query] == 12
    assert task.left_out == task.not_drawn == 0


def test_sampled_lists_hold_all_relevant_and_so_many_others(sets):
    queries, corpus = sets()
    task = make_task(queries, corpus, protocol="sampled", negatives=20, seed=5)
    for query in range(len(task.queries)):
        listed = task.lists.of(query)
        assert len(listed) == len(set(listed.tolist())) == 12 + 20
        relevant = task.relevance.of(query)
        assert set(relevant) <= set(listed)
        assert (listed[task.lists.relevance.of(query)] == relevant).all()
    assert (task.candidates == 32).all()


def test_sampled_lists_depend_on_seed_and_query_alone(sets):
    queries, corpus = sets()
    lists = {
        cap: make_task(queries, corpus, protocol="sampled", negatives=20, seed=5, max_queries=cap)
        for cap in (None, 4, 7)
    }
    everything = dict(zip(ids(lists[None].queries), lists[None].lists.rows.tolist(), strict=True))
    for task in lists.values():
        for query, rows in zip(ids(task.queries), task.lists.rows.tolist(), strict=True):
            assert rows == everything[query]
    other = make_task(queries, corpus, protocol="sampled", negatives=20, seed=6)
    assert (other.lists.rows != lists[None].lists.rows).any()


def test_short_corpus_gives_all_there_is_and_pads(sets):
    queries, corpus = sets()
    without = np.flatnonzero(np.array(corpus.groups.to_pylist()) != "g0")
    small = corpus[np.concatenate([[0, 1], without])]  # group 0 has 2 sequences, the others 12
    task = make_task(queries, small, protocol="sampled", negatives=55)
    assert sorted(set(task.candidates.tolist())) == [57, 62]
    task = make_task(queries, small, protocol="sampled")
    assert (task.candidates == 62).all()


def test_negatives_are_uniform(sets):
    queries, corpus = sets()
    drawn = np.zeros(len(corpus))
    for seed in range(60):
        task = make_task(queries, corpus, protocol="sampled", negatives=20, seed=seed)
        query = 0
        drawn[np.setdiff1d(task.lists.of(query), task.relevance.of(query))] += 1
    others = np.delete(drawn, make_task(queries, corpus).relevance.of(0))
    assert others.sum() == 60 * 20
    assert 9 <= others.min() <= others.max() <= 33  # 20 expected, binomial


def test_cap_is_nested_and_counted(sets):
    queries, corpus = sets()
    few, more = (make_task(queries, corpus, max_queries=n) for n in (4, 9))
    assert len(few.queries) == 4
    assert few.not_drawn == 8
    assert set(ids(few.queries)) < set(ids(more.queries))
    assert len(make_task(queries, corpus, max_queries=99).queries) == 12


def test_unseen_trains_on_one_half_and_ranks_the_other(sets):
    queries, corpus = sets()
    task = make_task(queries, corpus, condition="unseen", protocol="sampled", negatives=10)
    ranked, learned = (set(s.column("source").to_pylist()) for s in (task.corpus, task.training_corpus))
    assert not ranked & learned
    assert len(task.corpus) + len(task.training_corpus) == len(corpus)
    assert task.training_relevance.corpus_size == len(task.training_corpus)
    for query, group in enumerate(task.queries.groups.to_pylist()):
        assert set(task.corpus[task.relevance.of(query)].groups.to_pylist()) == {group}
    assert (np.sort(task.lists.of(0)) < len(task.corpus)).all()


def test_queries_that_nothing_answers_are_counted(sets):
    queries, corpus = sets()
    corpus = corpus[np.flatnonzero(np.array(corpus.groups.to_pylist()) != "g2")]
    task = make_task(queries, corpus)
    assert task.left_out == 2
    assert len(task.queries) == 10
    with pytest.raises(DataError, match="none of the 12 test queries"):
        make_task(queries, corpus.with_column("group", ["x"] * len(corpus)))


def test_without_split_column_the_queries_are_split_as_in_fit(sets):
    queries, corpus = sets()
    task = make_task(queries.without_columns("split"), corpus, seed=3)
    assert set(task.training_queries.column("split").to_pylist()) == {"train", "validation", "test"}
    tested = set(task.queries.column("source").to_pylist())
    rest = np.array(task.training_queries.column("split").to_pylist()) != "test"
    assert not tested & set(task.training_queries[rest].column("source").to_pylist())


def test_mistakes_are_named(sets):
    queries, corpus = sets()
    with pytest.raises(UserError, match="'half'"):
        make_task(queries, corpus, protocol="half")
    with pytest.raises(UserError, match="seen or unseen"):
        make_task(queries, corpus, condition="new")
    with pytest.raises(DataError, match=r"'dev'.*test, train, validation"):
        make_task(queries, corpus, split="dev")
    with pytest.raises(UserError, match="at least one"):
        make_task(queries, corpus, max_queries=0)
    both = EventSequences.concat([corpus.without_columns("split"), queries[:1].without_columns("split")])
    with pytest.raises(DataError, match=r"sequence q0: is both a query and in the corpus \(1 such\)"):
        make_task(queries, both)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("condition", ["seen", "unseen"])
def test_real_sets_do_not_leak(shared_data, name, condition):
    """No query is in the corpus; where a group has several sources, none is on both sides of a query's ranking."""
    columns = ["id", "group", "source", "split"]
    tables = {k: pq.read_table(shared_data / name / f"{k}.parquet", columns=columns[: 3 + (k == "queries")])
              for k in ("queries", "corpus")}  # fmt: skip

    def bare(table: pa.Table) -> EventSequences:
        """Return the rows with one dummy event each: only ids, groups and sources matter here."""
        lists = pa.array(np.arange(len(table) + 1)), pa.array(np.zeros(len(table)))
        table = table.append_column("times", pa.LargeListArray.from_arrays(*lists))
        marks = pa.LargeListArray.from_arrays(lists[0], pa.array(np.zeros(len(table), np.int32)))
        return EventSequences.from_arrow(table.append_column("marks", marks))

    queries, corpus = bare(tables["queries"]), bare(tables["corpus"])
    task = make_task(queries, corpus, condition=condition)
    assert not set(ids(task.queries)) & set(ids(task.corpus))
    sources: dict[str, set[str]] = {}
    for side in (queries, corpus):
        for group, source in zip(side.groups.to_pylist(), side.column("source").to_pylist(), strict=True):
            sources.setdefault(group, set()).add(source)
    ranked = set(zip(task.corpus.groups.to_pylist(), task.corpus.column("source").to_pylist(), strict=True))
    asked = set(zip(task.queries.groups.to_pylist(), task.queries.column("source").to_pylist(), strict=True))
    assert not {group for group, _ in ranked & asked if len(sources[group]) > 1}
    if condition == "unseen":
        # A group whose corpus has one source can only be halved by rows; any other source is on one side.
        own: dict[str, set[str]] = {}
        for group, source in zip(corpus.groups.to_pylist(), corpus.column("source").to_pylist(), strict=True):
            own.setdefault(group, set()).add(source)
        learned = set(
            zip(task.training_corpus.groups.to_pylist(), task.training_corpus.column("source").to_pylist(), strict=True)
        )
        assert not {source for group, source in ranked & learned if len(own[group]) > 1}
        assert not set(ids(task.corpus)) & set(ids(task.training_corpus))
        assert set(ids(task.corpus)) | set(ids(task.training_corpus)) == set(ids(corpus))
    # What is left out is exactly what has nothing to find.
    found = set(task.corpus.groups.to_pylist())
    tested = np.array(queries.column("split").to_pylist()) == "test"
    missing = [g not in found for g in queries[tested].groups.to_pylist()]
    assert task.left_out == sum(missing)
