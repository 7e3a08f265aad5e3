"""After repairs, errors name events by their place in the file."""

from __future__ import annotations

import math

import pytest

from neuroseqret.data.repair import repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError


def test_an_event_without_a_time_keeps_its_place_when_others_are_sorted() -> None:
    events = [([3.0, math.nan, 1.0], [0, 0, 0]), ([2.0, 1.0], [0, 1])]
    given = EventSequences.from_lists(events, ids=["a", "b"], validate=False)
    sorted_, report = repair(given, ["sort"])
    with pytest.raises(DataError, match="sequence a: event 1: time is nan"):
        sorted_.validate()
    assert sorted_[1].times.tolist() == [1.0, 2.0]
    assert str(report) == "1 sequence sorted"
