"""Windows against a loop over events, and what every cut must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.sequences import windows_by_count, windows_by_duration
from neuroseqret.data.equality import same_values
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.windows import joined, take_runs
from neuroseqret.errors import UserError
from strategies import event_sequences


def as_rows(windows: EventSequences) -> list[tuple]:
    assert windows.starts is not None
    assert windows.ends is not None
    parents, offsets = windows.column("parent").to_pylist(), windows.column("offset").to_pylist()
    return [
        (parent, offset, times, marks, start, end)
        for parent, offset, (times, marks), start, end in zip(
            parents, offsets, windows.to_lists(), windows.starts, windows.ends, strict=True
        )
    ]


@given(event_sequences(min_events=0), st.integers(1, 6), st.integers(1, 6), st.integers(1, 3))
def test_by_count_equals_the_loop(batch, size, step, min_events):
    cut = batch.windows(events=size, step=step, min_events=min_events)
    assert as_rows(cut) == windows_by_count(batch, size, step, min_events)


@given(
    event_sequences(min_events=0, limit=30),
    st.sampled_from([0.1, 0.25, 1.0, 3.3, 50.0]),
    st.sampled_from([None, 0.3, 0.5, 2.0]),
    st.integers(1, 3),
)
def test_by_duration_equals_the_loop(batch, size, step, min_events):
    cut = batch.windows(duration=size, step=step, min_events=min_events)
    assert as_rows(cut) == windows_by_duration(batch, size, step or size, min_events)


@given(event_sequences(limit=30), st.one_of(st.integers(1, 6), st.floats(0.05, 40)))
def test_without_overlap_every_event_is_in_exactly_one_window(batch, size):
    cut = batch.windows(**({"events": size} if isinstance(size, int) else {"duration": size}))
    assert np.array_equal(cut.times, batch.times)
    assert np.array_equal(cut.marks, batch.marks)


@given(event_sequences(limit=30), st.one_of(st.integers(1, 6), st.floats(0.05, 40)), st.floats(0.3, 1))
def test_windows_are_valid_batches_and_keep_what_their_parents_have(batch, size, overlap):
    if isinstance(size, int):
        cut = batch.windows(events=size, step=max(int(size * overlap), 1))
    else:
        cut = batch.windows(duration=size, step=size * overlap)
    cut.validate()
    assert (cut.mark_names, cut.time_unit) == (batch.mark_names, batch.time_unit)
    row_of = {id_: row for row, id_ in enumerate(batch.ids.to_pylist())}
    parents = batch[np.array([row_of[parent] for parent in cut.column("parent").to_pylist()], np.int64)]
    for name in batch.table.column_names:
        if name not in ("id", "times", "marks", "start", "end"):
            assert same_values(cut.column(name), parents.column(name))


def test_ids_tell_parent_and_place():
    batch = EventSequences.from_lists([([0, 1, 2, 3, 4], [0, 1, 0, 1, 0]), ([7], [1])], ids=["a", "b"])
    assert batch.windows(events=2).ids.to_pylist() == ["a[0:2]", "a[2:4]", "a[4:5]", "b[0:1]"]
    assert batch.windows(events=2, min_events=2).ids.to_pylist() == ["a[0:2]", "a[2:4]"]
    again = batch.windows(events=3).windows(events=2)
    assert again.ids.to_pylist() == ["a[0:3][0:2]", "a[0:3][2:3]", "a[3:5][0:2]", "b[0:1][0:1]"]
    assert again.column("parent").to_pylist() == ["a[0:3]", "a[0:3]", "a[3:5]", "b[0:1]"]


def test_a_gap_between_windows_longer_than_the_rest_is_no_window():
    batch = EventSequences.from_lists([(np.arange(7), np.zeros(7))], ids=["a"])
    assert batch.windows(events=2, step=4).to_lists() == [([0, 1], [0, 0]), ([4, 5], [0, 0])]


def test_small_steps_by_time_do_not_repeat_windows():
    batch = EventSequences.from_lists([([0, 10], [0, 0])], ids=["a"])
    assert batch.windows(duration=4, step=1).ids.to_pylist() == ["a[0:1]", "a[1:2]"]


def test_a_window_is_not_observed_longer_than_its_parent():
    batch = EventSequences.from_lists([([1, 2, 9], [0, 0, 0])], starts=[0], ends=[9.5])
    cut = batch.windows(duration=4)
    assert cut.starts.tolist() == [0, 8]
    assert cut.ends.tolist() == [4, 9.5]


def test_values_of_events_are_cut_with_their_events():
    batch = EventSequences.from_arrays(
        [1.0, 2.0, 3.0, 1.0],
        [0, 1, 0, 2],
        [0, 3, 4],
        metadata={"amount": [[10, 20, 30], [40]], "tags": [["a"], ["b", "c"]]},
    )
    windows = batch.windows(events=2)
    assert windows.column("amount").to_pylist() == [[10, 20], [30], [40]]
    assert windows.column("tags").to_pylist() == [["a"], ["a"], ["b", "c"]]


def test_runs_may_overlap_and_come_in_any_order():
    batch = EventSequences.from_lists([([0, 1, 2], [0, 1, 2]), ([5, 6], [1, 1])], ids=["a", "b"])
    runs = take_runs(batch, np.array([1, 0, 0]), np.array([0, 1, 0]), np.array([2, 3, 2]))
    assert runs.to_lists() == [([5, 6], [1, 1]), ([1, 2], [1, 2]), ([0, 1], [0, 1])]
    assert runs.column("offset").to_pylist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "either"),
        ({"events": 3, "duration": 2.0}, "either"),
        ({"events": 0}, "positive"),
        ({"duration": -1.0}, "positive"),
        ({"duration": float("nan")}, "positive"),
        ({"duration": 1.0, "step": 0.0}, "positive"),
        ({"events": 2.5}, "whole"),
        ({"events": 2, "step": 0.5}, "whole"),
        ({"events": 2, "min_events": 0}, "min_events"),
        ({"duration": 1e-12}, "longer"),
    ],
)
def test_impossible_windows_are_refused(options, words):
    batch = EventSequences.from_lists([([0, 1, 2], [0, 1, 0])])
    with pytest.raises(UserError, match=words):
        batch.windows(**options)


@given(event_sequences(limit=30), st.one_of(st.integers(1, 6), st.floats(0.5, 40)), st.floats(0.3, 1))
def test_joining_the_windows_of_a_sequence_gives_the_sequence(batch, size, overlap):
    for row in range(len(batch)):
        one = batch[row : row + 1].without_columns("parent", "offset")
        if isinstance(size, int):
            cut = one.windows(events=size, step=max(int(size * overlap), 1))
        else:
            cut = one.windows(duration=size, step=size * overlap)
        whole = joined(cut[::-1])
        assert whole[0].id == one[0].id
        assert whole.to_lists() == one.to_lists()
        assert whole[0].group == one[0].group
        assert whole.observed()[1] >= cut.observed()[1].max()


def test_values_of_events_come_together_again():
    one = EventSequences.from_lists(
        [([0.0, 1, 2, 5, 6], [0, 1, 0, 1, 1])], metadata={"amount": [[1.5, 2, 3, 4, 5]], "note": ["x"]}
    )
    whole = joined(one.windows(events=3, step=2))
    assert whole.without_columns("start", "end") == one
