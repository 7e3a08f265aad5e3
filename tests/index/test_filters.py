"""The conditions of `where`: parsed by the library, checked against the columns, and given to the store as SQL."""

from __future__ import annotations

import time
from datetime import date, datetime, timezone

import numpy as np
import pyarrow as pa
import pytest

from naive import filters as slow
from naive import index as naive
from neuroseqret import Index, UserError
from neuroseqret.index.filters import Filter
from neuroseqret.index.filters.text_parser import parse_text
from neuroseqret.index.filters.tree import Compare, all_of, any_of, to_sql


def matching(filtered_store, where):
    """The ids of the rows that meet a condition, by the store."""
    found = Filter.of(where)
    batches = filtered_store.scan(["id"], where=None if found is None else found.for_columns(filtered_store.schema))
    return sorted(name for batch in batches for name in batch.column("id").to_pylist())


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("role = 'GK'", "a"),
        ("ROLE='GK' Or age=-3", "ab"),
        ("role = 'it''s'", "b"),
        ("role <> 'GK' and role != ''", "bcdgh"),
        ("30 <= age", "aeh"),
        ("0 > age", "b"),
        ("age in (30, 7, null)", "afh"),
        ("age not in (30, 7)", "bceg"),
        ("age not in (30, null)", ""),
        ("age between 0 and 8", "cfg"),
        ("age not between 0 and 8", "abeh"),
        ("not (age between 0 and 8 or role is null)", "abh"),
        ("role like '%\\%\\_'", "d"),
        ("role like 'n__e'", "h"),
        ("role not like '%'", ""),
        ("role is null", "e"),
        ("not role is not null", "e"),
        ("age = null", ""),
        ("age not in (30, 7) or age not in (-3, 8)", "abcefgh"),  # the store by itself finds d, which has no age
        ("age not in (null) or age <> 0", "abefgh"),
        ("age = 30.0", "ah"),
        ("height = .5 or height = 1.5e0 or height = 3.", "ah"),
        ("active", "adfh"),
        ("not active", "be"),
        ("active = true and not not (active)", "adfh"),
        ("\"group\" = 'x' and end < 5 and `Two Words` < 7", "ad"),
        ("group is null", "be"),
        ('"qu""oted" = 3', "d"),
        ("born = '2000-01-01'", "ae"),
        ("born > date '1999-12-31'", "adeh"),
        ("seen > '2020-01-01'", "bf"),
        ("seen = timestamp '2020-01-02T03:04:05.000678'", "bf"),
        ("seen in ('2020-01-01', '1960-01-01 00:00:00')", "adeh"),
        ("zoned = '2020-01-01 02:00:00+02:00'", "aceg"),
        ("zoned = '2020-01-01T00:00:00Z' and zoned <= '2020-01-01'", "aceg"),
        ("tags is null", "bdfh"),
        ("", "abcdefgh"),
        ({}, "abcdefgh"),
        ({"role": "it's"}, "b"),
        ({"age": {">=": 0, "<": 30}, "active": True}, "f"),
        ({"age": {"in": [30, np.int64(7), None]}}, "afh"),
        ({"age": {"in": np.array([30, 7])}}, "afh"),
        ({"age": {"<>": np.int8(30)}}, "bcefg"),
        ({"role": {"like": '%"%'}}, "c"),
        ({"role": {"is_null": True}}, "e"),
        ({"role": {"is_null": False}, "age": {"!=": 30}}, "bcfg"),
        ({"role": "GK' OR 1 = 1 --"}, ""),
        ({"born": date(2000, 1, 1)}, "ae"),
        ({"seen": {">": datetime(2020, 1, 1)}}, "bf"),
        ({"zoned": datetime(2020, 1, 1, tzinfo=timezone.utc)}, "aceg"),
        ({"height": np.float64(1.5)}, "a"),
        ({"id": {"in": ("a", "b")}}, "ab"),
    ],
)
def test_conditions_that_are_supported(filtered_store, where, ids):
    assert "".join(matching(filtered_store, where)) == ids


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("role = 'GK') OR (1 = 1", r"unexpected '\)' at character 12; supported are"),
        ("role = 'GK' OR 1 = 1", "a value can only be compared with a column; supported are"),
        ("role = 'GK'; drop", "unexpected ';'"),
        ("role = 'GK' -- x", "unexpected '-'"),
        ("age + 1 > 2", r"unexpected '\+' at character 5; supported are"),
        ("age" + " + 1" * 2000 + " > 0", r"unexpected '\+'"),
        ("age" + " + 1" * 20000 + " > 0", "80,007 characters, 10,000 are allowed"),
        ("length(repeat('a', 1000000000)) > 1", "functions such as 'length' are not supported; supported are"),
        ("array_repeat(1, 9223372036854775807) is null", "functions such as 'array_repeat' are not supported"),
        ("nsr_serial > 0", "no column 'nsr_serial'; columns are id, group, end, role, (?!.*nsr_|.*times)"),
        ('"NSR_SERIAL" > 0', "no column 'NSR_SERIAL'"),
        ("_rowid > 0", "no column '_rowid'"),
        ("times is null", "no column 'times'"),
        ("rolle = 'GK'", "no column 'rolle'; columns are id"),
        ('role = "GK"', "'GK' is not a value .text stands in single quotes."),
        ("age = small", "'small' is not a value"),
        ("role =", "it ends too early; supported are"),
        ("role", "'role' is of type large_string; compare it with text in single quotes, not with True"),
        ("role = 1", "'role' is of type large_string; compare it with text in single quotes, not with 1"),
        ("age = 'x'", "'age' is of type int64; compare it with a number, not with 'x'"),
        ("age = true", "compare it with a number, not with True"),
        ("active = 1", "compare it with true or false, not with 1"),
        ("age > 1.5", "compare it with a whole number, not with 1.5"),
        ("small < 256", "beyond the range of its type, uint8"),
        ("small in (1, -1)", "beyond the range of its type, uint8"),
        ("age > 1e30", "beyond the range of its type, int64"),
        ("height < 1e400", "not finite, or beyond the range"),
        ("weight < 1e39", "not finite, or beyond the range of its type, float"),
        ("age = " + "9" * 5000, "the number 99999999999999999999... is too long"),
        ("age like '3%'", "LIKE is for text, and column 'age' is of type int64"),
        ("role like 3", "unexpected '3'"),
        ("role in ()", r"unexpected '\)'"),
        ("role is 3", "unexpected '3'"),
        ("role not = 3", "unexpected '='"),
        (
            "tags = 'a'",
            "'tags' holds a list per sequence, such as one value per event; a condition can only ask whether",
        ),
        ("end > '2024-03-01'", "'end' holds times as numbers; .* for this date is 1709251200 in seconds since 1970"),
        ({"end": {">": datetime(2024, 3, 1, 1, tzinfo=timezone.utc)}}, "for this date is 1709254800 in seconds"),
        ("end > 'soon'", "'end' is of type double; compare it with a number, not with 'soon'"),
        ("KIND = 'GK'", "no column 'KIND'; .*; the column named with group=... is called 'group' here"),
        ("seen > 'yesterday'", "'yesterday' is no date or time; write 2024-05-31"),
        ("seen > '2023-02-29'", "is no date or time"),
        ("seen > timestamp '٢٠٢٠-01-01'", "is no date or time"),
        ("seen > 5", "compare it with a date such as '2024-05-31', not with 5"),
        ("seen > '2020-01-01 00:00:00Z'", "holds times without a zone; write the time without an offset"),
        ("zoned > '0001-01-01 00:00:00+10:00'", "out of range"),
        ("seconds < '2020-01-01 00:00:00.5'", "compare it with a time that is not finer"),
        ("born = timestamp '2000-01-01 00:00:00'", "'born' holds dates"),
        ("born = '2000-01-01 00:00:00'", "is no date; write 2024-05-31"),
        ("role = 'GK", "the quote at character 8 is not closed"),
        ("\ud800 = 1", "it is not valid Unicode"),
        ("(" * 51 + "active" + ")" * 51, "nested more than 50 levels deep"),
        (" or (active and (".join(["active"] * 30) + "))" * 29, "nested more than 50 levels deep"),
        ("or ".join(["age<1"] * 1001), "it has 1,001 terms, 1,000 are allowed"),
        (f"age in ({','.join(['1'] * 1001)})", "it has 1,001 terms"),
        (5, "it must be SQL text or a mapping"),
        ({5: 1}, "column names must be strings, not int"),
        ({"rolle": "GK"}, "no column 'rolle'; columns are id"),
        ({"nsr_key": 1}, "no column 'nsr_key'; columns are id"),
        ({"role\" = 'GK' OR \"role": "x"}, "no column"),
        ({"role": None}, r"write {'role': {'is_null': True}}"),
        ({"role": ["GK"]}, "cannot be compared with a list; give text, .* or for several values {'in'"),
        ({"role": {}}, "the mapping for column 'role' is empty; operators are '=', '<>'"),
        ({"age": {"=>": 3}}, "unknown operator; operators are '=', "),
        ({"age": {("=",): 3}}, "unknown operator"),
        ({"age": {"in": []}}, "'in' needs 1 to 1,000 values, not 0"),
        ({"age": {"in": "abc"}}, "'in' needs a list of values, not str"),
        ({"age": {"in": range(10**9)}}, "'in' needs a list of values, not range"),
        ({"role": {"like": 3}}, "'like' needs text, not int"),
        ({"role": {"is_null": 1}}, "'is_null' needs True or False, not int"),
        ({"age": 10**5000}, "the number for column 'age' is too large"),
        ({"height": slow.NAN}, "not finite"),
        ({"role": "x" * 10_001}, "a text has 10,001 characters, 10,000 are allowed"),
        ({"role": "\udfff"}, "not valid Unicode"),
        ({str(i): i for i in range(1001)}, "it has 1,001 terms"),
    ],
)
def test_other_conditions_are_refused_with_one_line(filtered_store, where, message):
    with pytest.raises(UserError, match=r"the condition .* cannot be used: .*" + message) as caught:
        matching(filtered_store, where)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_two_names_that_differ_only_in_case():
    schema = pa.schema([("Role", pa.int64()), ("role", pa.int64())])
    for name in ("Role", "role"):
        assert Filter.of(f"{name} = 1").for_columns(schema) == f"`{name}` = 1"
    with pytest.raises(UserError, match="no column 'ROLE'"):
        Filter.of("ROLE = 1").for_columns(schema)


def test_the_largest_conditions_are_answered(filtered_store):
    deep = "active"
    for level in range(49):
        deep = f"age <> {level} {'or' if level % 2 else 'and'} ({deep})"
    wide, one_of = "or ".join(["age<1"] * 1000), f"age in ({','.join(map(str, range(1000)))})"
    for where in (deep, wide, one_of, "not " * 2400 + "active", "(" * 50 + "active" + ")" * 50):
        begin = time.process_time()
        assert matching(filtered_store, where) == slow.matching_rows(parse_text(where))
        assert time.process_time() - begin < 2
    # A path that is never the largest part of its level costs the store's parser most.
    tree = _bushy(9)
    for level in range(39):
        tree = (all_of if level % 2 else any_of)([Compare("age", "<>", level), tree])
    assert matching(filtered_store, to_sql(tree)) == slow.matching_rows(tree)


def _bushy(levels):
    if not levels:
        return Compare("small", "<>", 4)
    return (all_of if levels % 2 else any_of)([_bushy(levels - 1), _bushy(levels - 1)])


def test_where_of_a_search(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(60))
    query = naive.some_sequences(1, seed=9)[0]
    expected = [
        hit.id for hit in index.search(query, 60) if hit.metadata["role"] == "GK" and hit.metadata["year"] > 2003
    ]
    assert expected
    for where in ("role = 'GK' and year > 2003", {"role": "GK", "year": {">": 2003}}):
        assert [hit.id for hit in index.search(query, 60, where=where)] == expected
    assert len(index._reader.snapshot().filters) == 1  # the two have the same meaning
    with pytest.raises(UserError, match="the condition 'nsr_key > 0' cannot be used: there is no column"):
        index.search(query, where="nsr_key > 0")
