"""What Milvus does not take is refused before anything is stored."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroseqret.errors import DataError
from neuroseqret.index.engines.milvus_rows import LONGEST, check_rows, to_entities


def rows_of(**columns: pa.Array) -> pa.Table:
    number = len(next(iter(columns.values())))
    serials = pa.array(np.arange(number))
    embeddings = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(2 * number, np.float32)), 2)
    ids = pa.array([f"s{i}" for i in range(number)])
    return pa.table({"id": ids, "nsr_serial": serials, "nsr_key": serials, "nsr_embedding": embeddings, **columns})


texts = st.one_of(
    st.none(),
    st.text(max_size=20),
    st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=2), st.integers(1_000, 80_000)),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
    st.sampled_from([pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]),
)
def test_exactly_the_rows_that_are_too_large_are_refused(
    values: list[tuple[str | None, str | None]], kind: pa.DataType
) -> None:
    table = rows_of(note=pa.array([one for one, _ in values], kind), more=pa.array([two for _, two in values], kind))
    sizes = [len(json.dumps(row["nsr_values"], ensure_ascii=False).encode()) for row in to_entities(table, 2)]
    too_large = [f"s{at}" for at, size in enumerate(sizes) if size > LONGEST]
    if not too_large:
        check_rows(table)
        return
    with pytest.raises(DataError, match=f"sequence {too_large[0]}: its metadata take .* bytes"):
        check_rows(table)


def test_a_long_id_and_a_number_beyond_64_bits_are_refused() -> None:
    table = rows_of(count=pa.array([2**63 - 1, None, 2**63], pa.uint64()))
    with pytest.raises(DataError, match="sequence s2: the number in column 'count' is beyond the 64 bits of Milvus"):
        check_rows(table)
    check_rows(table.slice(0, 2))
    long = table.slice(0, 2).set_column(0, "id", pa.array(["a", "é" * 40_000]))
    with pytest.raises(DataError, match="the id has 80,000 bytes, Milvus takes 65,535"):
        check_rows(long)
