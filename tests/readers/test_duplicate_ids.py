"""Repeated ids are found at any size and in any slice, as by a loop with a set."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuroseqret.data.sequences import EventSequences
from neuroseqret.data.validation import first_occurrences
from neuroseqret.errors import DataError
from neuroseqret.readers import read, write

IDS = st.sampled_from(["", "a", "b", "ab", "é", "aé", "1", "2", "12", None])


@given(st.lists(IDS, max_size=12), st.integers(0, 3))
def test_first_occurrences_agree_with_a_set(ids: list[str | None], ahead: int) -> None:
    array = pa.array(["ahead"] * ahead + ids + ["behind"], pa.large_string()).slice(ahead, len(ids))
    seen: set[str | None] = set()
    expected = []
    for id_ in ids:
        expected.append(not id_ or id_ not in seen)
        seen.add(id_)
    assert first_occurrences(array).tolist() == expected


def test_one_repeated_id_among_many_is_named(tmp_path: object) -> None:
    ids = [f"s{i}" for i in range(20_000)]
    ids[15_000] = "s77"
    batch = EventSequences.from_lists([([1.0], [0])] * len(ids), ids=ids, validate=False)
    path = f"{tmp_path}/a.parquet"
    write(batch, path)
    with pytest.raises(DataError, match=r"a\.parquet: sequence s77: the id occurs more than once"):
        read(path)
