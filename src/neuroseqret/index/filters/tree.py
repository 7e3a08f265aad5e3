"""The syntax tree of a condition, and its canonical SQL.

There is no node for NOT: it is applied to the leaves when the tree is made (not (a and b) = not a or not b, and so on,
which holds for SQL's nulls too). `all_of` and `any_of` make trees in a normal form, so that parsing the SQL of a tree
gives the same tree. Its largest part comes first, because the nesting that the store's SQL parser accepts is limited,
and a part that comes first costs least of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime

Value = None | bool | int | float | str | date | datetime

MAX_CHARACTERS, MAX_DEPTH, MAX_TERMS = 10_000, 50, 1_000
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class Unusable(Exception):
    """What is wrong with a condition; `Filter` turns it into a `UserError` that names the condition."""


@dataclass(frozen=True)
class Compare:
    """A column compared with a value."""

    column: str
    operator: str  # a key of OPPOSITE
    value: Value


@dataclass(frozen=True)
class OneOf:
    """A column has one of the values, or none of them."""

    column: str
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True)
class Like:
    """A text column matches a pattern: `%` is any text, `_` any character, a backslash takes the next one literally."""

    column: str
    pattern: str
    negated: bool = False


@dataclass(frozen=True)
class IsNull:
    """A column has no value."""

    column: str
    negated: bool = False


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Or:
    """At least one part holds."""

    parts: tuple[Condition, ...]


Leaf = Compare | OneOf | Like | IsNull
Condition = Leaf | And | Or


def all_of(parts: Iterable[Condition]) -> Condition:
    """Return the condition that all parts hold, in normal form."""
    return _joined(And, parts)


def any_of(parts: Iterable[Condition]) -> Condition:
    """Return the condition that at least one part holds, in normal form."""
    return _joined(Or, parts)


def _joined(kind: type[And] | type[Or], parts: Iterable[Condition]) -> Condition:
    flat: list[Condition] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) else [part])
    return flat[0] if len(flat) == 1 else kind(tuple(sorted(flat, key=_leaves, reverse=True)))


def negation(condition: Condition) -> Condition:
    """Return the condition that this one does not hold; it is unknown where this one is."""
    if isinstance(condition, And):
        return any_of(negation(part) for part in condition.parts)
    if isinstance(condition, Or):
        return all_of(negation(part) for part in condition.parts)
    if isinstance(condition, Compare):
        return replace(condition, operator=OPPOSITE[condition.operator])
    return replace(condition, negated=not condition.negated)


def _leaves(condition: Condition) -> int:
    return sum(map(_leaves, condition.parts)) if isinstance(condition, (And, Or)) else 1


def _terms(condition: Condition) -> int:
    """Return the number of comparisons; each value of an IN is one."""
    if isinstance(condition, (And, Or)):
        return sum(map(_terms, condition.parts))
    return len(condition.values) if isinstance(condition, OneOf) else 1


def _depth(condition: Condition) -> int:
    return 1 + max(map(_depth, condition.parts)) if isinstance(condition, (And, Or)) else 1


def check_size(condition: Condition) -> None:
    """Raise `Unusable` if the tree has too many terms or levels."""
    if (terms := _terms(condition)) > MAX_TERMS:
        raise Unusable(f"it has {terms:,} terms, {MAX_TERMS:,} are allowed")
    if _depth(condition) > MAX_DEPTH:
        raise too_deep()


def too_deep() -> Unusable:
    return Unusable(f"it is nested more than {MAX_DEPTH} levels deep")


def to_sql(condition: Condition) -> str:
    """Return the condition as SQL, with quoted names and escaped values."""
    if isinstance(condition, Or):
        return " OR ".join(map(to_sql, condition.parts))
    if isinstance(condition, And):
        return " AND ".join(f"({to_sql(p)})" if isinstance(p, Or) else to_sql(p) for p in condition.parts)
    name = f"`{condition.column}`"  # names of columns have no backticks (`store.UNFIT`)
    if isinstance(condition, Compare):
        return f"{name} {condition.operator} {literal(condition.value)}"
    no = "NOT " if condition.negated else ""
    if isinstance(condition, IsNull):
        return f"{name} IS {no}NULL"
    if isinstance(condition, Like):
        return f"{name} {no}LIKE {literal(condition.pattern)}"
    return f"{name} {no}IN ({', '.join(map(literal, condition.values))})"


def literal(value: Value) -> str:
    """Return a value as SQL."""
    if value is None or isinstance(value, bool):
        return {None: "NULL", True: "TRUE", False: "FALSE"}[value]
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat(' ')}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return repr(value)
