"""The columns of a batch: which are taken, which are refused and why."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.columns import CANONICAL, numbers
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from strategies import event_sequences


def small(**options) -> EventSequences:
    return EventSequences.from_lists([([0, 1.5], [0, 1]), ([2], [1]), ([3, 3, 4], [2, 0, 0])], **options)


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


@pytest.mark.parametrize("values", [[], [1, 2, 3, 4], [1, None, 3, 4]])
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int32(), pa.int64()])
def test_numbers_are_those_of_arrow(values, kind):
    array = pa.array(values, kind)
    for part in (array, array[1:], array[1:3], array[4:]):
        expected = part.to_numpy(zero_copy_only=False)
        assert np.array_equal(numbers(part), expected, equal_nan=True)
        assert numbers(part).dtype == expected.dtype
    if len(values) and not array.null_count:
        assert not numbers(array).flags.writeable
