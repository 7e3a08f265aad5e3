"""Random conditions: their SQL parses to the same tree, and the store answers as a slow evaluation does."""

from __future__ import annotations

from datetime import date, datetime

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import filters as slow
from neuroseqret import UserError
from neuroseqret.index.filters import Filter
from neuroseqret.index.filters.columns import fit_to_columns
from neuroseqret.index.filters.text_parser import parse_text
from neuroseqret.index.filters.tree import OPPOSITE, Compare, IsNull, Like, OneOf, all_of, any_of, negation, to_sql

KINDS = ("role", "age", "small", "height", "weight", "active", "born", "seen", "Two Words", 'qu"oted', "group", "end")
TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    [v for v in slow.ROWS["role"].to_pylist() if v]
)
VALUES = {
    "text": TEXT,
    "int64": st.integers(-(2**63) + 1, 2**63 - 1) | st.sampled_from([30, -3, 0, 7]),
    "int32": st.integers(-1, 9),
    "uint8": st.integers(0, 255),
    "double": st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([1.5, 0.0, -2.5]) | st.integers(-3, 3),
    "float": st.floats(allow_nan=False, allow_infinity=False, width=32) | st.sampled_from([2.0, 3.0]),
    "bool": st.booleans(),
    "date32[day]": st.dates() | st.sampled_from([date(2000, 1, 1), "1960-02-29"]),
    "timestamp[us]": st.datetimes(datetime(1700, 1, 1), datetime(2200, 1, 1))
    | st.sampled_from([datetime(2020, 1, 1), date(1960, 1, 1), "2020-01-01 00:00:00"]),
}


def leaves(column):
    kind = str(slow.ROWS[column].type)
    values = st.none() | VALUES["text" if kind == "large_string" else kind]
    choices = [
        st.builds(Compare, st.just(column), st.sampled_from(list(OPPOSITE)), values),
        st.builds(OneOf, st.just(column), st.lists(values, min_size=1, max_size=4).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(column), st.booleans()),
    ]
    if kind == "large_string":
        patterns = st.text(st.sampled_from("%_aGKi's\"t\\né"), max_size=6).filter(lambda text: not text.endswith("\\"))
        choices.append(st.builds(Like, st.just(column), patterns, st.booleans()))
    return st.one_of(choices)


def joined(parts):
    several = st.lists(parts, min_size=2, max_size=4)
    return several.map(all_of) | several.map(any_of) | parts.map(negation)


CONDITIONS = st.recursive(st.sampled_from(KINDS).flatmap(leaves), joined, max_leaves=20)


@settings(deadline=None)
@given(CONDITIONS)
def test_the_sql_of_a_tree_parses_to_the_same_tree(condition):
    text = to_sql(condition)
    if len(text) <= 10_000:
        assert parse_text(text) == condition
        assert Filter.of(text).text == text
    assert negation(negation(condition)) == condition


@settings(deadline=None)
@given(CONDITIONS)
def test_the_store_agrees_with_a_slow_evaluation(filtered_store, condition):
    sql = to_sql(fit_to_columns(condition, filtered_store.schema))
    found = sorted(name for batch in filtered_store.scan(["id"], where=sql) for name in batch.column("id").to_pylist())
    assert found == slow.matching_rows(condition)


@settings(deadline=None)
@given(CONDITIONS)
def test_a_negation_is_false_where_the_condition_is_true_and_open_where_it_is_open(condition):
    for row in pa.table(slow.ROWS).to_pylist():
        assert slow.holds(negation(condition), row) is slow.opposite(slow.holds(condition, row))


_WORDS = (
    "role age active seen nsr_key and or not in between like is null true false date timestamp ( ) , - = <> < >= 'x' "
    "'2020-01-01' 1 1.5e3 \"role\" `age` ' \" ` + * ; length( \\ \0"
)


def check(where):
    """A condition is SQL, or an error of one line."""
    try:
        found = Filter.of(where)
        problem = ""
        if found is not None:
            found.for_columns(pa.table(slow.ROWS).schema)
    except UserError as error:
        problem = str(error)
    assert "\n" not in problem


@settings(deadline=None)
@given(st.lists(st.sampled_from(_WORDS.split()), max_size=30).map(" ".join) | st.text(max_size=60))
def test_any_text_is_a_condition_or_a_user_error(where):
    check(where)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=3) | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["=", "in", "like", "is_null", "<", "role", "age"]) | st.integers(), inner)
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["role", "age", "seen", "nsr_key"]) | st.text(max_size=3), ANYTHING) | ANYTHING)
def test_any_mapping_is_a_condition_or_a_user_error(where):
    check(where)
