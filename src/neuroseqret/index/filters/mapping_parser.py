"""A Python mapping to a tree: `{"role": "GK", "age": {">=": 30, "<": 40}}`. All of its conditions must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import numpy as np

from neuroseqret.index.filters.tree import (
    MAX_CHARACTERS,
    MAX_TERMS,
    OPPOSITE,
    Compare,
    Condition,
    IsNull,
    Like,
    OneOf,
    Unusable,
    Value,
    all_of,
)

_COMPARISONS = {**{operator: operator for operator in OPPOSITE}, "!=": "<>"}
_LONGEST_NUMBER = 128  # bits; Python refuses to print very long ones
_OPERATORS = ", ".join(repr(name) for name in (*_COMPARISONS, "in", "like", "is_null"))


def parse_mapping(mapping: Mapping[str, Any]) -> Condition:
    """Return the tree of a mapping that is not empty."""
    return all_of(part for column, wanted in mapping.items() for part in _of_column(column, wanted))


def _of_column(column: object, wanted: object) -> Iterator[Condition]:
    if not isinstance(column, str):
        raise Unusable(f"column names must be strings, not {type(column).__name__}")
    name = _value(column, column)
    if not isinstance(wanted, Mapping):
        if wanted is None:
            raise Unusable(f"write {{{name!r}: {{'is_null': True}}}} for rows without a value")
        yield Compare(name, "=", _value(name, wanted))
        return
    if not wanted:
        raise Unusable(f"the mapping for column {name!r} is empty; operators are {_OPERATORS}")
    for operator, value in wanted.items():
        yield _test(name, operator, value)


def _test(column: str, operator: object, value: Any) -> Condition:
    if operator == "in":
        return OneOf(column, _values(column, value))
    if operator == "like":
        if not isinstance(value, str):
            raise Unusable(f"'like' needs text, not {type(value).__name__}")
        return Like(column, _value(column, value))
    if operator == "is_null":
        if not isinstance(value, (bool, np.bool_)):
            raise Unusable(f"'is_null' needs True or False, not {type(value).__name__}")
        return IsNull(column, not value)
    if not isinstance(operator, str) or operator not in _COMPARISONS:
        raise Unusable(f"column {column!r} has an unknown operator; operators are {_OPERATORS}")
    return Compare(column, _COMPARISONS[operator], _value(column, value))


def _values(column: str, values: object) -> tuple[Value, ...]:
    if not isinstance(values, (list, tuple, set, frozenset, np.ndarray)) or np.ndim(values) > 1:  # type: ignore[arg-type]
        raise Unusable(f"'in' needs a list of values, not {type(values).__name__}")
    if not 1 <= len(values) <= MAX_TERMS:
        raise Unusable(f"'in' needs 1 to {MAX_TERMS:,} values, not {len(values):,}")
    return tuple(_value(column, value) for value in values)


def _value(column: str, value: Any) -> Any:
    """Return a value of a type that the tree holds."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        if len(value) > MAX_CHARACTERS:
            raise Unusable(f"a text has {len(value):,} characters, {MAX_CHARACTERS:,} are allowed")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise Unusable("a text is not valid Unicode")
        return str(value)
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        raise Unusable(f"the number for column {column!r} is too large")
    if value is None or isinstance(value, (bool, int, float, date)):
        return value
    raise Unusable(
        f"column {column!r} cannot be compared with a {type(value).__name__}; "
        "give text, a number, a truth value or a date, or for several values {'in': [...]}"
    )
