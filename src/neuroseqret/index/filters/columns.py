"""A condition checked against the columns of an index: each column is there, each value is of its type."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import date, datetime, timezone

import numpy as np
import pyarrow as pa

from neuroseqret.index.filters.moments import parse_day, parse_moment
from neuroseqret.index.filters.tree import (
    And,
    Compare,
    Condition,
    IsNull,
    Like,
    OneOf,
    Or,
    Unusable,
    Value,
    all_of,
    any_of,
)
from neuroseqret.index.store import INTERNAL, RESERVED

_SINGLE = float(np.finfo(np.float32).max)
_NANOSECOND_YEARS = (1678, 2261)  # a count of nanoseconds in 64 bits covers these
_UTC = ("UTC", "Etc/UTC", "Z", "+00:00")


def fit_to_columns(condition: Condition, schema: pa.Schema) -> Condition:
    """Return the condition with the columns' own names, with values of their types, and without nulls among them.

    It finds the same rows, but may be false where the given condition is unknown. This avoids a fault of the store,
    which simplifies some conditions with nulls wrongly, and takes x NOT IN (1) OR x NOT IN (2) as true if x is null.
    """
    if isinstance(condition, And):
        return all_of(fit_to_columns(part, schema) for part in condition.parts)
    if isinstance(condition, Or):
        return any_of(fit_to_columns(part, schema) for part in condition.parts)
    field = _field(condition.column, schema)
    if isinstance(condition, IsNull):
        return replace(condition, column=field.name)
    if isinstance(condition, Compare):
        value = _fitted(condition.value, field)
        return _never(field.name) if value is None else Compare(field.name, condition.operator, value)
    if isinstance(condition, OneOf):
        return _one_of(field.name, [_fitted(value, field) for value in condition.values], condition.negated)
    return replace(condition, column=field.name, pattern=_pattern(condition, field))


def _one_of(name: str, values: list[Value], negated: bool) -> Condition:
    known = tuple(value for value in values if value is not None)
    if not known or (negated and len(known) < len(values)):
        return _never(name)
    found = OneOf(name, known, negated)
    return all_of([IsNull(name, negated=True), found]) if negated else found


def _never(name: str) -> Condition:
    """Return a condition that no row meets."""
    return all_of([IsNull(name), IsNull(name, negated=True)])


def usable_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that a condition may name."""
    hidden = {*INTERNAL, *RESERVED, "times", "marks"}
    return [name for name in schema.names if name not in hidden and not name.startswith("nsr_")]


def _field(name: str, schema: pa.Schema) -> pa.Field:
    """Return the column of this name; upper and lower case may differ if only one column comes into question."""
    usable = usable_columns(schema)
    if name not in usable:
        alike = [known for known in usable if known.lower() == name.lower()]
        if len(alike) != 1:
            renamed = "; the column named with group=... is called 'group' here" if "group" in usable else ""
            listed = [known for known in usable if not pa.types.is_nested(schema.field(known).type)]
            raise Unusable(f"there is no column {name[:60]!r}; columns are {', '.join(listed)}{renamed}")
        name = alike[0]
    return schema.field(name)


def _pattern(condition: Like, field: pa.Field) -> str:
    if not _is_text(_plain(field.type)):
        raise Unusable(f"LIKE is for text, and column {field.name!r} is of type {field.type}")
    return condition.pattern


def _fitted(value: Value, field: pa.Field) -> Value:
    """Return a value as one of the column's type."""
    kind = _plain(field.type)
    if _is_text(kind):
        fits, wanted = isinstance(value, str), "text in single quotes"
    elif pa.types.is_boolean(kind):
        fits, wanted = isinstance(value, bool), "true or false"
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        fits, wanted = isinstance(value, (int, float)) and not isinstance(value, bool), "a number"
    elif pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        fits, wanted = isinstance(value, (str, date)), "a date such as '2024-05-31'"
    elif pa.types.is_nested(kind):
        raise Unusable(
            f"column {field.name!r} holds a list per sequence, such as one value per event; a condition can only ask "
            "whether it IS NULL. Add a column with one value per sequence to filter by"
        )
    else:
        raise Unusable(f"column {field.name!r} is of type {kind}, which only IS NULL can be used with")
    if value is None:
        return None
    if not fits and field.name in ("start", "end") and (moment := _as_seconds(value)) is not None:
        raise Unusable(
            f"column {field.name!r} holds times as numbers; compare it with a number, which for this date is "
            f"{moment:.15g} in seconds since 1970 (UTC)"
        )
    if not fits:
        raise Unusable(f"column {field.name!r} is of type {kind}; compare it with {wanted}, not with {_named(value)}")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _real(value, field.name, kind) if pa.types.is_floating(kind) else _whole(value, field.name, kind)
    if pa.types.is_timestamp(kind):
        return _moment(value, field.name, kind)  # type: ignore[arg-type]  # `fits`
    return _day(value, field.name) if pa.types.is_date(kind) else value  # type: ignore[arg-type]  # `fits`


def _as_seconds(value: Value) -> float | None:
    """Return a date as seconds since 1970, None if it is none."""
    if isinstance(value, str):
        try:
            value = parse_moment(value)
        except Unusable:
            return None
    if not isinstance(value, date):
        return None
    whole = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    return (whole if whole.tzinfo is not None else whole.replace(tzinfo=timezone.utc)).timestamp()


def _named(value: Value) -> str:
    text = repr(value) if isinstance(value, (str, bool)) else str(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _whole(value: float, name: str, kind: pa.DataType) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise Unusable(f"column {name!r} is of type {kind}; compare it with a whole number, not with {value}")
    whole, bits = int(value), 64 if pa.types.is_decimal(kind) else kind.bit_width
    unsigned = pa.types.is_unsigned_integer(kind)
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not max(least, 1 - 2**63) <= whole <= most:  # the store's SQL parser cannot read -2**63
        raise Unusable(f"the number for column {name!r} is beyond the range of its type, {kind}")
    return whole


def _real(value: float, name: str, kind: pa.DataType) -> float:
    try:
        real = float(value) + 0.0  # the store takes -0.0 as less than 0.0
    except OverflowError:
        real = math.inf
    if not math.isfinite(real) or (pa.types.is_float32(kind) and abs(real) > _SINGLE):
        raise Unusable(f"the number for column {name!r} is not finite, or beyond the range of its type, {kind}")
    return real


def _moment(value: str | date, name: str, kind: pa.TimestampType) -> datetime:
    """Return a time as the store compares it: in the column's zone and unit, which it would be truncated to."""
    if isinstance(value, str):
        value = parse_moment(value)
    elif not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        if kind.tz not in _UTC:
            zone = f"in the zone {kind.tz}" if kind.tz else "without a zone"
            raise Unusable(f"column {name!r} holds times {zone}; write the time without an offset")
        try:
            value = value.astimezone(timezone.utc).replace(tzinfo=None)
        except OverflowError as error:
            raise Unusable(f"the time for column {name!r} is out of range") from error
    finest = {"s": 1_000_000, "ms": 1_000}.get(kind.unit, 1)
    if value.microsecond % finest:
        raise Unusable(f"column {name!r} is of type {kind}; compare it with a time that is not finer")
    if kind.unit == "ns" and not _NANOSECOND_YEARS[0] <= value.year <= _NANOSECOND_YEARS[1]:
        raise Unusable(f"the time for column {name!r} is beyond the range of its type, {kind}")
    return value


def _day(value: str | date, name: str) -> date:
    if isinstance(value, datetime):
        raise Unusable(f"column {name!r} holds dates; compare it with a date such as '2024-05-31', without a time")
    return parse_day(value) if isinstance(value, str) else value
