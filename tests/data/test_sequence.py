"""One sequence: a row of a batch or made by hand, and a batch again."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError
from strategies import event_sequences


def small(**options) -> EventSequences:
    return EventSequences.from_lists([([0, 1.5], [0, 1]), ([2], [1]), ([3, 3, 4], [2, 0, 0])], **options)


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
