"""Every flaw is found, and named with its place and its remedy."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flawed import FLAWS, batch, damaged
from naive.sequences import flaws
from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.validation import find_flaws, first_occurrences
from neuroseqret.errors import DataError
from strategies import event_sequences


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


@given(event_sequences(min_events=0))
def test_valid_batches_have_no_flaw_but_emptiness(sequences):
    assert {flaw.kind for flaw in find_flaws(sequences)} <= {"empty sequence"}


@given(damaged())
def test_every_flaw_is_counted_as_by_the_loop(sequences):
    found = {flaw.kind: flaw.count for flaw in find_flaws(sequences)}
    assert found == flaws(sequences)
    if found:
        with pytest.raises(DataError):
            sequences.validate()
    else:
        assert sequences.validate() is sequences


def test_real_sets_have_no_flaw(shared_data):
    import pyarrow.parquet as pq

    for folder in sorted(shared_data.iterdir()):
        for file in folder.glob("*.parquet"):
            EventSequences.from_arrow(pq.read_table(file), validate=False).validate(file)


IDS = st.sampled_from(["", "a", "b", "ab", "é", "aé", "1", "2", "12", None])


@given(st.lists(IDS, max_size=12), st.integers(0, 3))
def test_first_occurrences_agree_with_a_set(ids, ahead):
    array = pa.array(["ahead"] * ahead + ids + ["behind"], pa.large_string()).slice(ahead, len(ids))
    seen: set[str | None] = set()
    expected = []
    for id_ in ids:
        expected.append(not id_ or id_ not in seen)
        seen.add(id_)
    assert first_occurrences(array).tolist() == expected


def test_one_repeated_id_among_many_is_named():
    ids = [f"s{i}" for i in range(20_000)]
    ids[15_000] = "s77"
    batch = EventSequences.from_lists([([1.0], [0])] * len(ids), ids=ids, validate=False)
    with pytest.raises(DataError, match=r"a\.parquet: sequence s77: the id occurs more than once"):
        batch.validate("a.parquet")
