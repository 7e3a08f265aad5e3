"""Conditions of `where` as Milvus writes them.

Metadata live in one JSON field. Milvus takes a comparison with a missing value as false, and its negation as true; SQL
takes both as unknown. So every negation also asks whether the value is there. `LIKE 'x%'` becomes a range of texts,
because what Milvus does with special characters in a pattern depends on its version.
"""

from __future__ import annotations

import json
from datetime import date, datetime, timezone

from neuroseqret.index.filters.tree import And, Compare, Condition, IsNull, Leaf, Like, OneOf, Or, Unusable, Value

ID, VALUES, SERIAL = "nsr_id", "nsr_values", "nsr_serial"
_LAST_CHARACTER = chr(0x10FFFF)
_EPOCH = datetime(1970, 1, 1)


def to_expression(condition: Condition, lists: bool = True) -> str:
    """Return a condition that fits the columns as an expression; without `lists`, one that does not use `in`.

    Milvus Lite knows `in` for fields alone, not for values inside a JSON field.
    """
    if isinstance(condition, And):
        return " and ".join(f"({to_expression(part, lists)})" for part in condition.parts)
    if isinstance(condition, Or):
        return " or ".join(f"({to_expression(part, lists)})" for part in condition.parts)
    name = _name(condition.column)
    if isinstance(condition, IsNull):
        return _is_there(condition.column) if condition.negated else _is_missing(condition.column)
    if isinstance(condition, OneOf):
        return _one_of(condition, name, lists)
    if isinstance(condition, Like):
        return _like(condition, name)
    return _compare(condition, name)


def plain_value(value: Value) -> bool | int | float | str | None:
    """Return a value as it is kept in Milvus: times as microseconds since 1970, dates as days."""
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        since = value - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, date):
        return value.toordinal() - _EPOCH.toordinal()
    return value


def _name(column: str) -> str:
    return ID if column == "id" else f"{VALUES}[{json.dumps(column, ensure_ascii=False)}]"


def _is_there(column: str) -> str:
    return f"{SERIAL} >= 0" if column == "id" else f"(exists {_name(column)})"


def _is_missing(column: str) -> str:
    return f"{SERIAL} < 0" if column == "id" else f"not (exists {_name(column)})"


def _literal(value: Value) -> str:
    return json.dumps(plain_value(value), ensure_ascii=False)


def _known(condition: Leaf, expression: str) -> str:
    """Return the expression, false where the column has no value."""
    return f"{_is_there(condition.column)} and ({expression})"


def _compare(condition: Compare, name: str) -> str:
    if condition.operator == "<>":
        return _known(condition, f"{name} != {_literal(condition.value)}")
    if isinstance(condition.value, bool) and condition.operator != "=":
        raise Unusable("Milvus compares truth values with = and <> only")
    found = f"{name} {'==' if condition.operator == '=' else condition.operator} {_literal(condition.value)}"
    if isinstance(condition.value, float) and condition.operator != "=":  # see `milvus_rows`; nan is above all numbers
        beyond = ("inf", "nan") if condition.operator in (">", ">=") else ("-inf",)
        found += "".join(f' or {name} == "{text}"' for text in beyond)
    return found


def _one_of(condition: OneOf, name: str, lists: bool) -> str:
    literals = [_literal(value) for value in condition.values]
    if (lists or condition.column == "id") and not isinstance(condition.values[0], bool):
        found = f"{name} in [{', '.join(literals)}]"
    else:
        found = " or ".join(f"({name} == {literal})" for literal in literals)
    return _known(condition, f"not ({found})") if condition.negated else found


def _like(condition: Like, name: str) -> str:
    prefix, exact = _prefix(condition.pattern)
    if exact:
        return _compare(Compare(condition.column, "<>" if condition.negated else "=", prefix), name)
    if not prefix:
        return f"{SERIAL} < 0" if condition.negated else _is_there(condition.column)
    low, high = _literal(prefix), _after(prefix)
    if condition.negated:
        outside = f"{name} < {low}" + (f" or {name} >= {_literal(high)}" if high else "")
        return _known(condition, outside)
    return f"{name} >= {low}" + (f" and {name} < {_literal(high)}" if high else "")


def _prefix(pattern: str) -> tuple[str, bool]:
    """Return the text that a pattern begins with, and whether nothing follows; refuse wildcards that are not last."""
    text, at = "", 0
    while at < len(pattern):
        character = pattern[at]
        if character == "%" and pattern[at:].strip("%") == "":
            return text, False
        if character in "%_":
            raise Unusable("Milvus finds texts by their beginning alone; write LIKE 'x%', with one % at the end")
        if character == "\\" and at + 1 < len(pattern):
            at += 1
            character = pattern[at]
        text, at = text + character, at + 1
    return text, True


def _after(prefix: str) -> str:
    """Return the first text after all those that begin with the prefix; empty if there is none.

    >>> _after("abc"), _after("a\\U0010ffff")
    ('abd', 'b')
    """
    kept = prefix.rstrip(_LAST_CHARACTER)
    if not kept:
        return ""
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no characters
