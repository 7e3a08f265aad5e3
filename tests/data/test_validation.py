"""Every flaw is found, named with its place and its remedy, and mended by the repair that the remedy names."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from naive.sequences import flaws
from neuroseqret.data.repair import REPAIRS, repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.validation import find_flaws
from neuroseqret.errors import DataError, UserError
from strategies import event_sequences

NAN, INF = float("nan"), float("inf")
EVENTS = [([0.0, 1.0], [0, 1]), ([2.0, 3.0, 4.0], [1, 0, 1])]
#: kind of flaw -> (what to change in a good batch, sequence, position, words of the problem, repair that mends it)
FLAWS = {
    "time not finite": ({"events": [EVENTS[0], ([2, INF, 4], [1, 0, 1])]}, "b", 1, "time is inf", "drop"),
    "time decreases": ({"events": [EVENTS[0], ([2, 4, 3.5], [1, 0, 1])]}, "b", 2, "time 3.5 is before.* 4", "sort"),
    "negative mark": ({"events": [EVENTS[0], ([2, 3, 4], [1, 0, -2])]}, "b", 2, "mark is -2", "drop"),
    "mark out of range": ({"events": [([0, 1], [0, 2]), EVENTS[1]]}, "a", 1, "mark 2 has no name.* 2 ", "drop"),
    "missing id": ({"ids": ["a", None]}, "in row 1", None, "id is missing", "drop"),
    "empty sequence": ({"events": [EVENTS[0], ([], [])]}, "b", None, "no events", "drop"),
    "duplicate id": ({"ids": ["a", "a"]}, "a", None, "more than once", "deduplicate"),
    "window starts late": ({"starts": [0, 2.5]}, "b", 0, "starts at 2.5.* at 2", "clip"),
    "window ends early": ({"ends": [1, 3]}, "b", 2, "ends at 3.* at 4", "clip"),
}


def batch(events=EVENTS, ids=("a", "b"), starts=(0, 0), ends=(1, 4), **columns) -> EventSequences:
    return EventSequences.from_lists(
        events,
        **{"ids": ids, "starts": starts, "ends": ends, "mark_names": ["x", "y"], "time_unit": "days", **columns},
        validate=False,
    )


@pytest.mark.parametrize("kind", FLAWS)
def test_a_flaw_is_named_with_place_and_remedy(kind):
    change, sequence, position, problem, remedy = FLAWS[kind]
    with pytest.raises(DataError) as caught:
        batch(**change).validate(file="some.parquet")
    error, line = caught.value, str(caught.value)
    assert (error.file, error.sequence, error.position) == ("some.parquet", sequence, position)
    place = f": event {position}" if position is not None else ""
    assert line.startswith(f"some.parquet: sequence {sequence}{place}: ")
    assert re.search(problem, line)
    assert line.endswith(f"repair with '{remedy}'")
    assert "\n" not in line


@pytest.mark.parametrize("kind", FLAWS)
def test_its_remedy_mends_it_and_says_so(kind):
    change, _, _, _, remedy = FLAWS[kind]
    mended, report = repair(batch(**change), remedy)
    mended.validate()
    assert (mended.mark_names, mended.time_unit) == (("x", "y"), "days")
    assert sum(report.changes.values()) == 1
    assert re.fullmatch(r"1 \w.*", str(report))


@pytest.mark.parametrize("action", REPAIRS)
def test_good_data_needs_no_repair(action):
    good = batch()
    mended, report = repair(good, action)
    assert mended == good
    assert str(report) == "nothing to repair"


@given(event_sequences(min_events=0))
def test_valid_batches_have_no_flaw_but_emptiness(sequences):
    assert {flaw.kind for flaw in find_flaws(sequences)} <= {"empty sequence"}


@st.composite
def damaged(draw):
    """A batch to which anything may have been done."""
    made = draw(event_sequences(min_sequences=1, min_events=0, metadata=False))
    number, events = len(made), len(made.times)
    times, marks = made.times.copy(), made.marks.copy()
    ids, bounds = made.ids.to_pylist(), {"starts": made.starts, "ends": made.ends}
    for _ in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["time", "mark", "id", "window"]))
        row = draw(st.integers(0, number - 1))
        if kind in ("time", "mark") and events:
            event = draw(st.integers(0, events - 1))
            if kind == "time":
                times[event] = draw(st.sampled_from([NAN, INF, -INF, 0.0, -5.0]))
            else:
                marks[event] = draw(st.sampled_from([-1, 99, 0, 2**31 - 1]))
        elif kind == "id":
            ids[row] = draw(st.sampled_from([None, "", ids[0]]))
        elif kind == "window" and made.starts is not None:
            name = draw(st.sampled_from(["starts", "ends"]))
            values = [None if b is None else float(b) for b in bounds[name]]
            values[row] = draw(st.sampled_from([None, INF, -INF, NAN, 0.0]))
            bounds[name] = values
    return EventSequences.from_arrays(
        times,
        marks,
        made.offsets,
        ids=pa.array(ids, pa.large_string()),
        **{name: b if b is None else pa.array(b, pa.float64()) for name, b in bounds.items()},
        groups=made.groups,
        mark_names=made.mark_names,
        time_unit=made.time_unit,
        validate=False,
    )


@given(damaged())
def test_every_flaw_is_counted_as_by_the_loop(sequences):
    found = {flaw.kind: flaw.count for flaw in find_flaws(sequences)}
    assert found == flaws(sequences)
    if found:
        with pytest.raises(DataError):
            sequences.validate()
    else:
        assert sequences.validate() is sequences


@given(damaged())
def test_all_repairs_together_mend_anything(sequences):
    mended, report = repair(sequences, REPAIRS)
    mended.validate()
    again, nothing = repair(mended, REPAIRS)
    assert again == mended
    assert not any(nothing.changes.values())
    assert (mended == sequences) == (not any(report.changes.values()))


@given(damaged(), st.sets(st.sampled_from(sorted(REPAIRS))))
def test_a_repair_does_only_what_it_is_asked_for(sequences, actions):
    mended, _ = repair(sequences, actions)
    ids, before = mended.ids.to_pylist(), sequences.ids.to_pylist()
    if not actions & {"drop", "deduplicate"}:
        assert ids == before
        assert mended.groups == sequences.groups
    if not actions & {"drop", "deduplicate", "deduplicate-events"}:
        assert np.array_equal(mended.lengths, sequences.lengths)
    if not actions & {"drop", "deduplicate", "deduplicate-events", "sort"}:
        assert np.array_equal(mended.times, sequences.times, equal_nan=True)
    if "clip" not in actions and len(mended) == len(sequences) and sequences.starts is not None:
        assert np.array_equal(mended.starts, sequences.starts, equal_nan=True)
    if actions == set():
        assert mended is sequences


@given(event_sequences(min_sequences=1, views=False), st.randoms(use_true_random=False))
def test_sorting_is_stable_and_undoes_a_shuffle(sequences, random):
    shuffled = []
    for times, marks in sequences.to_lists():
        order = list(range(len(times)))
        random.shuffle(order)
        shuffled.append(([times[i] for i in order], [marks[i] for i in order]))
    mixed = sequences.with_column("times", [t for t, _ in shuffled]).with_column("marks", [x for _, x in shuffled])
    mended, report = repair(mixed, "sort")
    naive = [sorted(zip(t, x, strict=True), key=lambda event: event[0]) for t, x in shuffled]
    assert mended.to_lists() == [([t for t, _ in row], [x for _, x in row]) for row in naive]
    moved = [before != after for before, after in zip(shuffled, mended.to_lists(), strict=True)]
    assume(all(len(set(zip(t, x, strict=True))) == len(t) for t, x in shuffled))  # equal events may trade places unseen
    assert report.changes["sequences sorted"] == sum(moved)


def test_equal_events_are_legal_and_stay_unless_named():
    same = batch([([0, 0, 1, 0.5], [1, 1, 0, 1]), ([2, 2, 2], [1, 0, 1])], starts=None, ends=None)
    kept, _ = repair(same, ["sort", "drop", "clip", "deduplicate"])
    assert kept.to_lists() == [([0, 0, 0.5, 1], [1, 1, 1, 0]), ([2, 2, 2], [1, 0, 1])]
    fewer, report = repair(same, ["sort", "deduplicate-events"])
    assert fewer.to_lists() == [([0, 0.5, 1], [1, 1, 0]), ([2, 2], [1, 0])]
    assert report.changes["repeated events dropped"] == 2


def test_an_unknown_window_is_no_flaw_and_is_not_invented():
    unknown = batch(starts=pa.array([None, 2.5]), ends=pa.array([0.5, None]))
    assert {flaw.kind for flaw in find_flaws(unknown)} == {"window starts late", "window ends early"}
    mended, report = repair(unknown, "clip")
    assert mended.column("start").to_pylist() == [None, 2.0]
    assert mended.column("end").to_pylist() == [1.0, None]
    assert report.changes == {"window starts moved": 1, "window ends moved": 1}


def test_values_of_events_go_with_their_events():
    batch = EventSequences.from_arrays(
        [3.0, 1.0, float("nan"), 5.0, 4.0],
        [0, 1, 0, 2, 2],
        [0, 3, 5],
        metadata={"amount": [[30, 10, 0], [50, 40]], "tags": [["a"], ["b", "c", "d"]]},
        validate=False,
    )
    mended, _ = repair(batch, ["drop", "sort"])
    assert mended.to_lists() == [([1.0, 3.0], [1, 0]), ([4.0, 5.0], [2, 2])]
    assert mended.column("amount").to_pylist() == [[10, 30], [40, 50]]
    assert mended.column("tags").to_pylist() == [["a"], ["b", "c", "d"]]


def test_a_repair_nobody_knows_is_refused():
    with pytest.raises(UserError, match="no repair is called 'mend'; there are drop, sort, deduplicate"):
        repair(batch(), ["sort", "mend"])
    with pytest.raises(TypeError):
        repair(batch())  # what to mend is never guessed


def test_real_sets_have_no_flaw(shared_data):
    import pyarrow.parquet as pq

    for folder in sorted(shared_data.iterdir()):
        for file in folder.glob("*.parquet"):
            EventSequences.from_arrow(pq.read_table(file), validate=False).validate(file)
