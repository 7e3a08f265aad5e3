"""The data model: any valid batch survives everything that is done to batches."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.columns import CANONICAL
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError
from strategies import event_sequences


def small(**options) -> EventSequences:
    return EventSequences.from_lists([([0, 1.5], [0, 1]), ([2], [1]), ([3, 3, 4], [2, 0, 0])], **options)


# -------------------------------------------------------------------- slice, select, join


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


# -------------------------------------------------------------------- one sequence


@given(event_sequences(min_events=0))
def test_rows_make_the_batch_again(batch):
    if len(batch):
        assert EventSequences.of(list(batch)) == batch
        assert EventSequences.of(batch[0]) == batch[:1]
    assert EventSequences.of(batch) is batch


def test_rows_of_several_batches_and_by_hand_come_together():
    first = small(ids=["a", "b", "c"], groups=["x", "y", "x"])
    second = small(ids=["d", "e", "f"], metadata={"day": [1, 2, 3]})
    by_hand = EventSequence("g", [0, 1], [1, 2], start=0.0, metadata={"day": 4})
    joined = EventSequences.of([first[2], by_hand, second[1]])
    assert joined.ids.to_pylist() == ["c", "g", "e"]
    assert joined.groups.to_pylist() == ["x", None, None]
    assert joined.column("day").to_pylist() == [None, 4, 2]
    assert joined.to_lists() == [([3, 3, 4], [2, 0, 0]), ([0, 1], [1, 2]), ([2], [1])]


def test_a_sequence_by_hand_is_checked():
    with pytest.raises(DataError, match="2 times but 1 marks"):
        EventSequence("a", [0, 1], [0])
    with pytest.raises(DataError, match="sequence a: event 1: time 0 is before"):
        EventSequences.of(EventSequence("a", [1, 0], [0, 0]))
    changed = dataclasses.replace(small()[0], times=np.array([np.nan, 1]))
    with pytest.raises(DataError, match="time is nan"):
        EventSequences.of(changed)
    with pytest.raises(DataError, match="mark names differ"):
        EventSequences.of([small()[0], small(mark_names=["a", "b", "c"])[1]])


def test_a_sequence_equals_by_value():
    batch = small(groups=["x", "y", "x"], metadata={"real": [float("nan"), 1.0, 2.0]})
    assert batch[0] == batch[0]
    assert batch[0] == small(groups=["x", "y", "x"], metadata={"real": [float("nan"), 1.0, 2.0]})[0]
    assert batch[0] != batch[1]
    assert batch[0] != dataclasses.replace(batch[0], group="z")
    assert batch[0] != dataclasses.replace(batch[0], time_unit="days")
    assert batch[0] == dataclasses.replace(batch[0])
    assert batch[0] != "a"
    assert batch.index(batch[2]) == 2
    assert batch[1] in batch


# -------------------------------------------------------------------- equality and repr


@given(event_sequences(min_sequences=1, views=False), st.data())
def test_any_change_makes_a_batch_unequal(batch, data):
    assert batch == EventSequences(batch.table, batch.mark_names, batch.time_unit)
    assert batch != batch[:-1]
    assert batch != EventSequences(batch.table, [*(batch.mark_names or []), "more"], batch.time_unit)
    assert batch != EventSequences(batch.table, batch.mark_names, f"{batch.time_unit}s")
    row = data.draw(st.integers(0, len(batch) - 1))
    times = batch.to_lists()
    times[row][0][-1] = np.nextafter(times[row][0][-1], np.inf)
    changed = batch.with_column("times", [t for t, _ in times])
    assert changed != batch
    assert changed.fingerprint() != batch.fingerprint()
    marks = batch.to_lists()
    marks[row][1][0] += 1
    assert batch.with_column("marks", [x for _, x in marks]) != batch
    assert batch.with_column("extra", list(range(len(batch)))) != batch


def test_equality_looks_into_nested_columns_and_not_at_their_encoding():
    def batch(values, type_):
        return small(metadata={"extra": pa.array(values, type_)})

    reals = pa.list_(pa.float64())
    holes = [[1, float("nan")], None, []]
    assert batch(holes, reals) == batch(holes, pa.large_list(pa.float64()))
    assert batch([[1.0], None, []], reals) != batch([[1.0], [], []], reals)
    assert batch([[1.0], [2.0], []], reals) != batch([[1.0, 2.0], [], []], reals)
    colours = pa.dictionary(pa.int8(), pa.string())
    assert batch(["red", None, "blue"], colours) == batch(["red", None, "blue"], pa.string())
    assert batch([1, 2, 3], pa.int32()) != batch([1, 2, 3], pa.int64())
    record = pa.struct([("a", pa.float64())])
    assert batch([{"a": float("nan")}, None, {"a": 1}], record) == batch([{"a": float("nan")}, None, {"a": 1}], record)
    assert batch([{"a": 1}, None, {"a": 1}], record) != batch([{"a": 1}, {"a": None}, {"a": 1}], record)


@given(event_sequences(min_events=0))
def test_repr_tells_the_size(batch):
    assert f"{len(batch):,} sequences" in repr(batch)
    assert f"{len(batch.times):,} events" in repr(batch)
    for row in batch:
        assert repr(row.id) in repr(row)


def test_repr_tells_meaning():
    batch = small(groups=["x", None, "y"], time_unit="days", mark_names=["a", "b", "c", "d"])
    assert repr(batch) == "EventSequences(3 sequences, 6 events, 4 marks, lengths 1 to 3, 2 groups, time in days)"
    assert repr(batch[2]) == "EventSequence('2', 3 events, 3 to 4 days, group 'y')"


# -------------------------------------------------------------------- to and from


@given(event_sequences(min_events=0))
def test_arrow_round_trip_keeps_data_and_meaning(batch):
    assert EventSequences.from_arrow(batch.to_arrow(), validate=False) == batch


@given(event_sequences(min_events=0))
def test_pandas_round_trip_keeps_data_and_meaning(batch):
    assert EventSequences.from_pandas(batch.to_pandas(), validate=False) == batch


@given(event_sequences(min_events=0))
def test_polars_round_trip_keeps_data(batch):
    frame = batch.to_polars()
    back = EventSequences.from_polars(frame, mark_names=batch.mark_names, time_unit=batch.time_unit, validate=False)
    assert back == batch


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


def test_plain_frames_of_users_are_understood():
    wanted = EventSequences.from_lists([([0, 1], [0, 1]), ([2], [1])], ids=["1", "2"], groups=["x", "y"])
    data = {"marks": [[0, 1], [1]], "group": ["x", "y"], "times": [[0, 1], [2]], "id": [1, 2]}
    assert EventSequences.from_pandas(pandas.DataFrame(data)) == wanted
    assert EventSequences.from_pandas(pandas.DataFrame(data).astype({"group": "category"})) == wanted
    assert EventSequences.from_polars(polars.DataFrame(data)) == wanted
    categories = polars.DataFrame(data).with_columns(polars.col("group").cast(polars.Categorical))
    assert EventSequences.from_polars(categories) == wanted
    arrow = pa.table({**data, "marks": pa.array([[0.0, 1.0], [1.0]])})
    assert EventSequences.from_arrow(arrow) == wanted
    assert EventSequences.from_arrow(pa.concat_tables([arrow.slice(0, 1), arrow.slice(1, 1)])) == wanted


def test_tables_that_are_no_sequences_are_refused_by_name():
    good = {"id": ["a", "b"], "times": [[0.0, 1.0], [2.0]], "marks": [[0, 1], [1]]}

    def refused(words, **columns):
        with pytest.raises(DataError, match=words) as caught:
            EventSequences.from_arrow(pa.table({k: v for k, v in {**good, **columns}.items() if v is not None}))
        assert "\n" not in str(caught.value)

    refused("no column 'times'.*id, marks", times=None)
    refused("sequence b: 1 times but 2 marks", marks=[[0, 1], [1, 1]])
    refused("sequence b: no times", times=[[0.0, 1.0], None])
    refused("sequence b: event 0: null among the marks", marks=[[0, 1], [None]])
    refused("sequence a: event 1: null among the times", times=[[0.0, None], [2.0]])
    refused("'marks' is list<.*string", marks=[["x", "y"], ["x"]])
    refused("'marks' is list<.*double", marks=[[0.5, 1], [1]])
    refused("'marks' is", marks=[[2**40, 1], [1]])
    refused("'times' is string", times=["a", "b"])
    refused("sequence b: event 0: time is nan", times=[[0.0, 1.0], [float("nan")]])
    twice = pa.table(good).append_column("id", pa.array(["a", "b"]))
    with pytest.raises(DataError, match="'id' occurs more than once"):
        EventSequences.from_arrow(twice)
    damaged = pa.table(good).replace_schema_metadata({b"neuroseqret": b"{"})
    with pytest.raises(DataError, match="damaged"):
        EventSequences.from_arrow(damaged)


def test_nulls_outside_a_slice_do_not_matter():
    table = pa.table({"id": ["a", "b"], "times": [[None], [2.0]], "marks": [[1], [1]]})
    assert EventSequences.from_arrow(table.slice(1)).to_lists() == [([2.0], [1])]


def test_arrays_that_are_no_sequences_are_refused():
    for words, arguments in {
        "3 times but 2 marks": ([0, 1, 2], [0, 1], [0, 2]),
        "offsets must rise": ([0, 1], [0, 1], [0, 1]),
        "offsets must": ([0, 1], [0, 1], [0, 2, 1, 2]),
        "offsets": ([], [], []),
        "not a 32-bit integer": ([0, 1], [0, 0.5], [0, 2]),
        "mark 4294967296": ([0, 1], [0, 2**32], [0, 2]),
        "mark nan": ([0, 1], [0, float("nan")], [0, 2]),
        "not integers": ([0, 1], ["a", "b"], [0, 2]),
        "not numbers": (["x", 1], [0, 0], [0, 2]),
        "times are dates": (np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]"), [0, 0], [0, 2]),
        "dimensions": ([[0], [1]], [0, 0], [0, 2]),
    }.items():
        with pytest.raises(DataError, match=words):
            EventSequences.from_arrays(*arguments)
    with pytest.raises(DataError, match="one mark per time"):
        EventSequences.from_lists([([0, 1], [0])])
    with pytest.raises(DataError, match="'group' has 2 rows"):
        small(groups=["x", "y"])
    with pytest.raises(DataError, match="'start' is not metadata"):
        small(metadata={"start": [0, 0, 0]})
    with pytest.raises(DataError, match="cannot be made"):
        small(metadata={"day": [1, "x", 2]})


# -------------------------------------------------------------------- columns and meaning


@given(event_sequences(min_events=0), st.sampled_from(["group", "start", "note", "source"]))
def test_columns_come_and_go(batch, name):
    values = [1.0] * len(batch) if name == "start" else ["v"] * len(batch)
    changed = batch.with_column(name, values)
    assert changed.column(name).to_pylist() == values
    assert (changed.mark_names, changed.time_unit) == (batch.mark_names, batch.time_unit)
    known = [c for c in changed.table.column_names if c in CANONICAL]
    assert changed.table.column_names[: len(known)] == [c for c in CANONICAL if c in known]
    assert changed.without_columns(name) == batch.without_columns(name)
    assert batch.without_columns("nothing") == batch


def test_a_column_that_does_not_fit_is_refused():
    batch = small()
    with pytest.raises(DataError, match="2 values for 3"):
        batch.with_column("note", ["a", "b"])
    with pytest.raises(DataError, match="times but"):
        batch.with_column("times", [[0.0], [1.0], [2.0]])
    chunked = pa.chunked_array([["a", "b"], ["c"]])
    assert batch.with_column("note", chunked).column("note").to_pylist() == ["a", "b", "c"]


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
