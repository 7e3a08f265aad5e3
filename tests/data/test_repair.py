"""Every flaw is mended by the repair that its remedy names, and a repair does nothing else."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from flawed import FLAWS, batch, damaged
from neuroseqret.data.repair import REPAIRS, repair
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.validation import find_flaws
from neuroseqret.errors import UserError
from strategies import event_sequences


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
    with pytest.raises(UserError, match="no repair is called 'mend'; choose from drop, sort, deduplicate"):
        repair(batch(), ["sort", "mend"])
    with pytest.raises(TypeError):
        repair(batch())  # what to mend is never guessed
