"""Marks by name, however a file numbers them."""

from __future__ import annotations

import pytest

from neuroseqret.data.meaning import in_terms_of
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError

MODEL = {"mark_names": ["buy", "search", "view"], "marks": 3, "time_unit": "seconds"}


def batch(names, *marks, unit=None):
    pairs = [(list(range(len(m))), m) for m in marks]
    ids = [f"s{row}" for row in range(len(pairs))]
    return EventSequences.from_lists(pairs, ids=ids, mark_names=names, time_unit=unit, groups=["g"] * len(pairs))


def marks_of(sequences):
    return [marks for _, marks in sequences.to_lists()]


def test_marks_are_matched_by_name():
    today = batch(["search", "view"], [0, 1, 1], [1])
    told = in_terms_of(today, MODEL)
    assert marks_of(told) == [[1, 2, 2], [2]]
    assert told.mark_names == ("buy", "search", "view")
    assert told.without_columns("marks").table.equals(today.without_columns("marks").table)
    assert marks_of(in_terms_of(today[1:], MODEL)) == [[2]]  # a slice, whose offsets do not begin at 0
    assert marks_of(in_terms_of(batch(["view", "search", "buy"], [0, 1, 2]), MODEL)) == [[2, 1, 0]]
    same = batch(MODEL["mark_names"], [0, 2], unit="seconds")
    assert in_terms_of(same, MODEL) is same
    assert marks_of(in_terms_of(batch(["buy", "never used", "view"], [0, 2]), MODEL)) == [[0, 2]]
    assert len(in_terms_of(batch(["other"]), MODEL)) == 0


def test_an_unknown_mark_is_named():
    with pytest.raises(DataError) as caught:
        in_terms_of(batch(["cat", "view"], [1], [1, 0]), MODEL, "day.csv")
    assert str(caught.value) == (
        "day.csv: sequence s1: event 1: mark 'cat' is unknown to the model, which knows buy, search, view; "
        "leave such events out, or 'neuroseqret fit' a model to data that has them"
    )
    with pytest.raises(DataError, match="sequence s0: event 1: mark '3' is unknown"):
        in_terms_of(batch(None, [2, 3]), MODEL)
    with pytest.raises(DataError, match=r"mark 'x' is unknown to the model, which knows 0, 1, .*7, ... \(10\)"):
        in_terms_of(batch(["3", "x"], [0, 1]), {"marks": 10})


def test_marks_without_names_are_numbers():
    assert marks_of(in_terms_of(batch(None, [0, 2]), MODEL)) == [[0, 2]]
    # In a CSV marks are text if one of them is no number, so that a day without it has numbers.
    assert marks_of(in_terms_of(batch(None, [1, 2]), {"mark_names": ["1", "2", "other"]})) == [[0, 1]]
    assert marks_of(in_terms_of(batch(["2", "4"], [0, 1]), {"mark_names": None, "marks": 5})) == [[2, 4]]
    unknown = batch(["a", "b"], [0, 1])
    assert in_terms_of(unknown, {}) is unknown


def test_time_units_must_agree():
    with pytest.raises(DataError, match=r"f.csv: times are in days, the model's in seconds; convert the times"):
        in_terms_of(batch(None, [0], unit="days"), MODEL, "f.csv")
    assert in_terms_of(batch(None, [0], unit="days"), {**MODEL, "time_unit": None}).time_unit == "days"
