"""Columns that an error of a condition names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from neuroseqret.index.filters.columns import fit_to_columns
from neuroseqret.index.filters.tree import Compare, Unusable


def test_only_columns_that_can_be_compared_are_listed() -> None:
    schema = pa.schema({"age": pa.int64(), "amounts": pa.list_(pa.float64()), "role": pa.string()})
    with pytest.raises(Unusable, match=r"there is no column 'aeg'; columns are age, role$"):
        fit_to_columns(Compare("aeg", "=", 1), schema)
