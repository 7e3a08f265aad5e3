"""Conditions of `where`, translated for Milvus, find the rows that SQL finds."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest

from naive import filters as slow
from neuroseqret import UserError
from neuroseqret.index.config import IndexConfig, IndexSettings
from neuroseqret.index.engines import open_engine
from neuroseqret.index.engines.milvus_filter import to_expression
from neuroseqret.index.filters import Filter
from neuroseqret.index.filters.text_parser import parse_text
from neuroseqret.index.store import EMBEDDING, KEY, SERIAL

CONDITIONS = [
    "role = 'GK'",
    "role = 'it''s' or age = -3",
    "role <> 'GK' and role <> ''",
    "role in ('GK', 'né\ne', 'ba\\ck`', 'a \"b\"')",
    "role not in ('GK', '')",
    "role like '50\\%%'",
    "role like '50\\%\\_'",
    "role like 'ba\\\\%'",
    "role like 'n%'",
    "role not like 'i%'",
    "role like '%'",
    "role not like '%'",
    "role is null",
    "role is not null",
    "id like 'a%' or id in ('c', 'd')",
    "id <> 'a' and id is not null",
    "id is null",
    "age >= 30",
    "age = 4611686018427387904",
    "age between -3 and 7",
    "age not between -3 and 7",
    "age not in (30, 7) or age not in (-3, 8)",
    "age in (30, 7, null)",
    'small = 255 or "Two Words" < 2',
    '"qu""oted" = 3',
    "height > 1.0",
    "height <= 0",
    "height <> 1.5",
    "weight = 2",
    "active",
    "not active",
    "active <> true",
    "born = '2000-01-01' or born < '1970-01-01'",
    "seen >= '2020-01-02' and seen < '2020-01-03'",
    "seen < '1970-01-01'",
    "seconds is null or seconds = '2020-01-01'",
    "tags is not null",
    "not (age between 0 and 8 or role is null) and (group = 'x' or end > 4)",
]


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory):
    """The engine with the rows of `naive.filters`, one per dialect."""
    made = {}

    def get(address):
        dialect = "lite" if ".db/" in address else "server"
        if dialect not in made:
            config = IndexConfig(model="tiny", dimension=2, settings=IndexSettings(), identity=dialect)
            made[dialect] = open_engine(address, config, tmp_path_factory.mktemp("hash") / "hash")
            made[dialect].make()
            made[dialect].insert(made[dialect].prepare(table()))
        return made[dialect]

    return get


def table():
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.tile([1.0, 0.0], 8).astype(np.float32)), 2)
    return pa.table({SERIAL: range(8), KEY: range(8), EMBEDDING: vectors, **slow.ROWS})


def test_the_same_rows_as_sql(address, engine_of):
    engine = engine_of(address)
    for text in CONDITIONS:
        where = Filter.of(text).for_columns(table().schema, engine.expression)
        found = engine.best(np.array([1, 0], np.float32), 100, table().schema, where).records
        assert sorted(row["id"] for row in found) == slow.matching_rows(parse_text(text)), (text, where)
    zoned = Filter.of("zoned >= '2020-01-01T01:00:00+01:00'").for_columns(table().schema, engine.expression)
    found = engine.best(np.array([1, 0], np.float32), 100, table().schema, zoned).records
    assert sorted(row["id"] for row in found) == list("aceg")


def test_metadata_come_back_as_they_are(address, engine_of):
    found = engine_of(address).best(np.array([1, 0], np.float32), 100, table().schema).records
    kept = [name for name in slow.ROWS if name not in ("times", "tags")]
    for row in found:
        want = next(r for r in pa.table(slow.ROWS).to_pylist() if r["id"] == row["id"])
        assert repr({n: want[n] for n in kept if want[n] is not None}) == repr({n: row[n] for n in kept if n in row})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("role like '%x'", "Milvus finds texts by their beginning alone"),
        ("role like 'a_c%'", "write LIKE 'x%'"),
        ("active > false", "truth values with = and <> only"),
    ],
)
def test_what_milvus_cannot_say_is_refused(text, told):
    with pytest.raises(UserError, match=told) as refused:
        Filter.of(text).for_columns(table().schema, to_expression)
    assert "\n" not in str(refused.value)
    assert text[:4] in str(refused.value)


def test_texts_cannot_leave_their_quotes():
    where = Filter.of({"role": 'x" or true or "'}).for_columns(table().schema, to_expression)
    assert where == 'nsr_values["role"] == "x\\" or true or \\""'
    assert not re.search(r'(?<!\\)" or', where)
