"""The data model: any valid batch survives everything that is done to batches."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from strategies import event_sequences


def small(**options) -> EventSequences:
    return EventSequences.from_lists([([0, 1.5], [0, 1]), ([2], [1]), ([3, 3, 4], [2, 0, 0])], **options)


@given(event_sequences(min_events=0), st.data())
def test_selection_equals_the_rows_one_by_one(batch, data):
    rows = list(batch)
    bounds = st.one_of(st.none(), st.integers(-7, 7))
    part = slice(data.draw(bounds), data.draw(bounds), data.draw(st.sampled_from([None, 1, 2, -1, -3])))
    assert list(batch[part]) == rows[part]
    mask = data.draw(st.lists(st.booleans(), min_size=len(batch), max_size=len(batch)))
    assert list(batch[np.array(mask, bool)]) == [row for row, chosen in zip(rows, mask, strict=True) if chosen]
    number = len(batch)
    picks = data.draw(st.lists(st.integers(-number, number - 1), max_size=6) if number else st.just([]))
    assert list(batch[picks]) == [rows[pick] for pick in picks]


@given(event_sequences(min_events=0), st.data())
def test_cut_apart_and_joined_is_the_same(batch, data):
    place = data.draw(st.integers(0, len(batch)))
    joined = EventSequences.concat([batch[:place], batch[place:]])
    assert joined == batch
    assert joined.fingerprint() == batch.fingerprint()
    assert EventSequences.concat([batch]) == batch


@given(event_sequences(min_events=0))
def test_slices_of_slices_and_views_agree_with_copies(batch):
    copied = batch[np.arange(len(batch))]
    assert copied == batch
    assert np.array_equal(copied.offsets, batch.offsets)
    assert np.array_equal(copied.times, batch.times)
    assert batch[1:][1:] == batch[2:]
    assert batch.offsets[0] == 0
    assert batch.offsets[-1] == len(batch.times) == len(batch.marks)
    assert np.array_equal(batch.lengths, [len(row) for row in batch])


def test_a_slice_costs_nothing():
    batch = small()
    assert np.shares_memory(batch[1:].times, batch.times)
    assert np.shares_memory(batch[2].marks, batch.marks)


def test_selection_refuses_what_is_no_selection():
    batch = small()
    for key, error in [
        (3, IndexError),
        (-4, IndexError),
        ([0, 3], IndexError),
        ([-4], IndexError),
        ([True, False], IndexError),
        ([[0, 1]], IndexError),
        ([0.5], TypeError),
        (["a"], TypeError),
    ]:
        with pytest.raises(error):
            batch[key]


def test_joining_fills_missing_columns_with_null_in_canonical_order():
    plain = small(ids=["a", "b", "c"])
    rich = small(ids=["d", "e", "f"], starts=[0, 0, 0], groups=["x", "y", "x"], metadata={"day": [1, 2, 3]})
    joined = EventSequences.concat([plain, rich])
    assert joined.table.column_names == ["id", "times", "marks", "start", "group", "day"]
    assert joined.groups.to_pylist() == [None, None, None, "x", "y", "x"]
    assert joined.observed()[0].tolist() == [0, 2, 3, 0, 0, 0]
    joined.validate()


def test_joining_refuses_data_of_different_meaning():
    with pytest.raises(DataError, match="mark names differ"):
        EventSequences.concat([small(mark_names=["a", "b", "c"]), small(mark_names=["b", "a", "c"])])
    with pytest.raises(DataError, match="time units differ"):
        EventSequences.concat([small(time_unit="days"), small(time_unit="seconds")])
    with pytest.raises(DataError, match="do not fit together"):
        EventSequences.concat([small(metadata={"day": [1, 2, 3]}), small(metadata={"day": ["x", "y", "z"]})])


@given(event_sequences(min_events=0))
def test_repr_tells_the_size(batch):
    assert f"{len(batch):,} sequence" in repr(batch)
    assert f"{len(batch.times):,} event" in repr(batch)
    for row in batch:
        assert repr(row.id) in repr(row)


def test_repr_tells_meaning():
    batch = small(groups=["x", None, "y"], time_unit="days", mark_names=["a", "b", "c", "d"])
    assert repr(batch) == "EventSequences(3 sequences, 6 events, 4 marks, lengths 1 to 3, 2 groups, time in days)"
    assert repr(batch[2]) == "EventSequence('2', 3 events, 3 to 4 days, group 'y')"


@given(event_sequences(min_events=0))
def test_arrow_round_trip_keeps_data_and_meaning(batch):
    assert EventSequences.from_arrow(batch.to_arrow(), validate=False) == batch


@given(event_sequences(min_events=0, metadata=False))
def test_lists_round_trip_keeps_events(batch):
    columns = {
        "ids": batch.ids.to_pylist(),
        "starts": batch.starts,
        "ends": batch.ends,
        "groups": None if batch.groups is None else batch.groups.to_pylist(),
        "mark_names": batch.mark_names,
        "time_unit": batch.time_unit,
    }
    assert EventSequences.from_lists(batch.to_lists(), **columns, validate=False) == batch


@given(event_sequences(min_events=0))
def test_pickle_and_deepcopy_keep_a_batch(batch):
    """Worker processes and caches of the user's send batches by pickle."""
    assert pickle.loads(pickle.dumps(batch)) == batch
    assert copy.deepcopy(batch) == batch
    for row in batch:
        assert EventSequences.of(pickle.loads(pickle.dumps(row))) == EventSequences.of(row)


def test_a_pickled_part_is_small():
    events = np.arange(10_000.0)
    batch = EventSequences.from_arrays(events, np.zeros(10_000), np.arange(0, 10_001, 10))
    assert batch.times[0] == 0  # cached by now
    assert len(pickle.dumps(batch)) < 1.2 * batch.nbytes
    assert len(pickle.dumps(batch[3:5])) < 8_000
    assert len(pickle.dumps(batch[3])) < 8_000


@given(event_sequences(min_events=0, named=True), st.data())
def test_meaning_is_carried_through_every_operation(batch, data):
    meaning = (batch.mark_names, batch.time_unit)
    number = len(batch)
    made = [
        batch[:1],
        batch[np.zeros(number, bool)],
        batch[list(range(number))],
        EventSequences.concat([batch, batch]),
        batch.windows(events=2),
        batch.windows(duration=1e10),
        batch.with_column("note", [None] * number),
        batch.without_columns("group"),
        EventSequences.of(batch[0]) if number else batch,
        EventSequences.from_arrow(batch.to_arrow(), validate=False),
        EventSequences.from_pandas(batch.to_pandas(), validate=False),
    ]
    assert {(other.mark_names, other.time_unit) for other in made} == {meaning}
    assert all((row.mark_names, row.time_unit) == meaning for row in batch)
    renamed = batch.with_meaning(time_unit="hours")
    assert (renamed.mark_names, renamed.time_unit) == (batch.mark_names, "hours")


def test_an_empty_batch_is_a_batch():
    empty = EventSequences.from_lists([])
    assert len(empty) == 0
    assert list(empty) == empty.to_lists() == []
    assert empty == small()[:0] == EventSequences.of([]) == EventSequences.concat([])
    assert repr(empty) == "EventSequences(0 sequences, 0 events, 0 marks)"
    assert empty.num_marks == 0
    assert [len(edge) for edge in empty.observed()] == [0, 0]
    assert empty.validate().windows(events=3).windows(duration=2).to_lists() == []
    assert EventSequences.from_pandas(empty.to_pandas()) == empty
    assert EventSequences.from_polars(empty.to_polars()) == empty


def test_the_vocabulary_is_what_the_names_say():
    assert small().num_marks == 3
    assert small(mark_names=["a", "b", "c", "d"]).num_marks == 4


def test_real_sets_survive(shared_data):
    import pyarrow.parquet as pq

    for name in ("health", "sports", "celebrity", "twitter"):
        table = pq.read_table(shared_data / name / "queries.parquet")
        batch = EventSequences.from_arrow(table, time_unit="seconds")
        assert EventSequences.from_pandas(batch.to_pandas()) == batch
        assert EventSequences.from_polars(batch.to_polars(), time_unit="seconds") == batch
        half = len(batch) // 2
        assert EventSequences.concat([batch[:half], batch[half:]]) == batch
