"""Slow, obvious evaluation of conditions, row by row, with SQL's three-valued logic: True, False, None (unknown)."""

from __future__ import annotations

import re
from datetime import date, datetime

import pyarrow as pa

from neuroseqret.index.filters.tree import And, Compare, IsNull, Like, OneOf

NAN = float("nan")
ROWS = {
    "id": pa.array(list("abcdefgh"), pa.large_string()),
    "group": pa.array(["x", None, "y"] * 2 + ["x", "y"], pa.large_string()),
    "times": pa.array([[0.0]] * 8, pa.large_list(pa.float64())),
    "end": pa.array([1.0, 2.0, None, 4.0, 5.0, 6.0, 7.0, 8.0]),
    "role": pa.array(["GK", "it's", 'a "b"', "50%_", None, "", "ba\\ck`", "né\ne"], pa.large_string()),
    "age": pa.array([30, -3, 0, None, 2**62, 7, 8, 30], pa.int64()),
    "small": pa.array([0, 1, 255, None, 4, 5, 6, 7], pa.uint8()),
    "height": pa.array([1.5, NAN, None, 0.0, -2.5, 1e300, 5e-324, 3.0]),
    "weight": pa.array([0.1, 2.0, None, 3.0, -1.0, NAN, 0.0, 9.0], pa.float32()),
    "active": pa.array([True, False, None, True, False, True, None, True]),
    "born": pa.array([date(2000, 1, 1), None, date(1960, 2, 29), date(2024, 12, 31)] * 2, pa.date32()),
    "seen": pa.array([datetime(2020, 1, 1), datetime(2020, 1, 2, 3, 4, 5, 678), None, datetime(1960, 1, 1)] * 2),
    "zoned": pa.array([datetime(2020, 1, 1), None] * 4, pa.timestamp("us", "UTC")),
    "seconds": pa.array([datetime(2020, 1, 1), None] * 4, pa.timestamp("s")),
    "Two Words": pa.array(range(8), pa.int32()),
    'qu"oted': pa.array(range(8), pa.int32()),
    "tags": pa.array([["a"], None] * 4),
}


def matching_rows(condition):
    """The ids of the rows that meet a condition."""
    return [row["id"] for row in pa.table(ROWS).to_pylist() if holds(condition, row) is True]


def holds(condition, row):
    """Whether a row (a dictionary) meets a condition; None if a null leaves it open."""
    if isinstance(condition, And):
        return _all([holds(part, row) for part in condition.parts])
    if isinstance(condition, Compare):
        return _compare(row[condition.column], condition.operator, condition.value)
    if isinstance(condition, OneOf):
        found = _any([_compare(row[condition.column], "=", value) for value in condition.values])
        return opposite(found) if condition.negated else found
    if isinstance(condition, Like):
        value = row[condition.column]
        found = None if value is None else re.fullmatch(_expression(condition.pattern), value, re.DOTALL) is not None
        return opposite(found) if condition.negated else found
    if isinstance(condition, IsNull):
        return (row[condition.column] is None) != condition.negated
    return _any([holds(part, row) for part in condition.parts])


def _compare(left, operator, right):
    if left is None or right is None:
        return None
    if isinstance(left, datetime) and not isinstance(right, datetime):
        right = (
            datetime.fromisoformat(right) if isinstance(right, str) else datetime(right.year, right.month, right.day)
        )
    elif isinstance(left, date) and isinstance(right, str):
        right = date.fromisoformat(right)
    left, right = _key(left), _key(right)
    return {
        "=": left == right,
        "<>": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def _key(value):
    """Not-a-number comes after every number."""
    return (value != value, 0 if value != value else value)


def opposite(value):
    """NOT: the opposite, unknown if the value is."""
    return None if value is None else not value


def _all(values):
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _any(values):
    return opposite(_all([opposite(value) for value in values]))


def _expression(pattern):
    """A LIKE pattern as a regular expression."""
    parts = re.findall(r"\\[\\%_]|.", pattern, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part, re.escape(part[1:] if len(part) == 2 else part)) for part in parts)
