"""The conditions of `where`: an own, small SQL dialect, so that the store never sees the user's text.

- `tree.py`: the syntax tree and its canonical SQL
- `text_parser.py`: SQL text to a tree
- `mapping_parser.py`: a Python mapping to a tree
- `columns.py`: the tree checked against the columns of an index

>>> Filter.of("age >= 30 and not role = 'GK'").text
"`age` >= 30 AND `role` <> 'GK'"
>>> Filter.of({"age": {">=": 30}, "role": {"<>": "GK"}}).text
"`age` >= 30 AND `role` <> 'GK'"
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from neuroseqret.errors import UserError
from neuroseqret.index.filters.columns import fit_to_columns
from neuroseqret.index.filters.mapping_parser import parse_mapping
from neuroseqret.index.filters.text_parser import parse_text
from neuroseqret.index.filters.tree import Condition, Unusable, check_size, to_sql

__all__ = ["Filter", "Where"]

Where = str | Mapping[str, Any]
_SHOWN = 120  # characters of a condition that an error message repeats


@dataclass(frozen=True)
class Filter:
    """A condition that was parsed, but not yet checked against the columns of an index."""

    condition: Condition
    text: str  # canonical SQL; two conditions with the same text mean the same
    given: str  # how messages name it

    @staticmethod
    def of(where: Where) -> Filter | None:
        """Parse a condition; return None if it is empty and every row meets it."""
        if isinstance(where, str):
            return _of_text(where)
        given = _shown(where)
        try:
            if not isinstance(where, Mapping):
                raise Unusable("it must be SQL text or a mapping such as {'role': 'GK'}")
            return _made(parse_mapping(where), given) if where else None
        except Unusable as error:
            raise _as_user_error(given, error) from error

    def for_columns(self, schema: pa.Schema, to_language: Callable[[Condition], str] = to_sql) -> str:
        """Return the condition for a store with these columns, as SQL or in the language of an engine.

        Raise a `UserError` if it does not fit the columns, or if the language cannot say it.
        """
        try:
            return to_language(fit_to_columns(self.condition, schema))
        except Unusable as error:
            raise _as_user_error(self.given, error) from error


@lru_cache(maxsize=64)  # parsing a long condition takes longer than a search
def _of_text(where: str) -> Filter | None:
    given = _shown(where)
    try:
        return _made(parse_text(where), given) if where else None
    except Unusable as error:
        raise _as_user_error(given, error) from error


def _made(condition: Condition, given: str) -> Filter:
    check_size(condition)
    return Filter(condition, to_sql(condition), given)


def _shown(where: object) -> str:
    """Return what was given, on one line and not too long."""
    if isinstance(where, str):
        return repr(where) if len(where) <= _SHOWN else f"{where[:_SHOWN]!r}..."
    short = reprlib.Repr()
    short.maxstring = short.maxother = _SHOWN
    try:
        return short.repr(where).replace("\n", " ")
    except ValueError:  # Python refuses to print very long numbers
        return f"in this {type(where).__name__}"


def _as_user_error(given: str, error: Unusable) -> UserError:
    return UserError(f"the condition {given} cannot be used: {error}")
