"""Marks by name, however a file numbers them."""

from __future__ import annotations

import pytest

from neuroseqret.data.meaning import Meaning
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError

MODEL = Meaning(3, ("buy", "search", "view"), "seconds")


def batch(names, *marks, unit=None):
    pairs = [(list(range(len(m))), m) for m in marks]
    ids = [f"s{row}" for row in range(len(pairs))]
    return EventSequences.from_lists(pairs, ids=ids, mark_names=names, time_unit=unit, groups=["g"] * len(pairs))


def marks_of(sequences):
    return [marks for _, marks in sequences.to_lists()]


def test_marks_are_matched_by_name():
    today = batch(["search", "view"], [0, 1, 1], [1])
    told = MODEL.apply(today)
    assert marks_of(told) == [[1, 2, 2], [2]]
    assert told.mark_names == ("buy", "search", "view")
    assert told.without_columns("marks").table.equals(today.without_columns("marks").table)
    assert marks_of(MODEL.apply(today[1:])) == [[2]]  # a slice, whose offsets do not begin at 0
    assert marks_of(MODEL.apply(batch(["view", "search", "buy"], [0, 1, 2]))) == [[2, 1, 0]]
    same = batch(MODEL.mark_names, [0, 2], unit="seconds")
    assert MODEL.apply(same) is same
    assert marks_of(MODEL.apply(batch(["buy", "never used", "view"], [0, 2]))) == [[0, 2]]
    assert len(MODEL.apply(batch(["other"]))) == 0


def test_an_unknown_mark_is_named():
    with pytest.raises(DataError) as caught:
        MODEL.apply(batch(["cat", "view"], [1], [1, 0]), file="day.csv")
    assert str(caught.value) == (
        "day.csv: sequence s1: event 1: mark 'cat' is unknown to the model, which knows buy, search, view; "
        "leave such events out or count them as one unknown mark (--unknown-marks drop or keep; in Python "
        "unknown_marks), or fit a model to data that has them"
    )
    with pytest.raises(DataError, match="sequence s0: event 1: mark '3' is unknown"):
        MODEL.apply(batch(None, [2, 3]))
    with pytest.raises(DataError, match=r"mark 'x' is unknown to the model, which knows 0, 1, .*7, ... \(10\)"):
        Meaning(10).apply(batch(["3", "x"], [0, 1]))


def test_marks_without_names_are_numbers():
    assert marks_of(MODEL.apply(batch(None, [0, 2]))) == [[0, 2]]
    # In a CSV marks are text if one of them is no number, so that a day without it has numbers.
    assert marks_of(Meaning(3, ("1", "2", "other")).apply(batch(None, [1, 2]))) == [[0, 1]]
    assert marks_of(Meaning(5).apply(batch(["2", "4"], [0, 1]))) == [[2, 4]]
    unknown = batch(["a", "b"], [0, 1])
    assert Meaning().apply(unknown) is unknown


def test_time_units_must_agree():
    with pytest.raises(DataError, match=r"f.csv: times are in days, the model's in seconds; convert the times"):
        MODEL.apply(batch(None, [0], unit="days"), file="f.csv")
    assert Meaning(3, MODEL.mark_names).apply(batch(None, [0], unit="days")).time_unit == "days"


def test_unknown_marks_are_dropped_or_kept_on_request():
    mixed = batch(["cat", "view", "dog", "buy"], [0, 1, 2, 3], [1, 0, 1]).with_column(
        "value", [[1, 2, 3, 4], [5, 6, 7]]
    )
    dropped = MODEL.apply(mixed, "drop")
    assert marks_of(dropped) == [[2, 0], [2, 2]]
    assert dropped.column("value").to_pylist() == [[2, 4], [5, 7]]  # values go with their events
    assert dropped.times.tolist() == [1, 3, 0, 2]
    kept = MODEL.apply(mixed, "keep")
    assert marks_of(kept) == [[3, 2, 3, 0], [2, 3, 2]]
    assert kept.mark_names == ("buy", "search", "view", "(unknown)")
    assert MODEL.apply(kept) is kept  # the choice was made
    assert MODEL.apply(batch(["view"], [0]), "keep").mark_names == MODEL.mark_names
    assert marks_of(Meaning(2).apply(batch(None, [0, 5]), "keep")) == [[0, 5]]
    with pytest.raises(DataError, match="sequence s1: no event has a mark that the model knows"):
        MODEL.apply(batch(["view", "cat"], [0], [1, 1]), "drop")
    with pytest.raises(UserError, match="unknown marks can be error, drop, keep, not 'ignore'"):
        MODEL.apply(mixed, "ignore")


def test_two_trained_methods_must_speak_of_the_same_things():
    MODEL.check_same(Meaning(3, None, "seconds"), "it")
    with pytest.raises(UserError, match="it: learned the marks a, b; the index has buy, search, view"):
        MODEL.check_same(Meaning(2, ("a", "b")), "it")
    with pytest.raises(UserError, match="it: learned times in days; the index has seconds"):
        MODEL.check_same(Meaning(3, None, "days"), "it")
