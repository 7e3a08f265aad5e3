"""SQL text to a tree: a recursive-descent parser for the documented subset.

condition := term {OR term}          term := factor {AND factor}
factor    := {NOT} ( "(" condition ")" | column | column test | value operator column )
test      := operator value | IS [NOT] NULL
           | [NOT] IN "(" value {"," value} ")" | [NOT] BETWEEN value AND value | [NOT] LIKE text
value     := number | text | TRUE | FALSE | NULL | DATE text | TIMESTAMP text
"""

from __future__ import annotations

import re
from typing import NamedTuple

from neuroseqret.index.filters.moments import parse_day, parse_moment
from neuroseqret.index.filters.tree import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    Compare,
    Condition,
    IsNull,
    Like,
    OneOf,
    Unusable,
    Value,
    all_of,
    any_of,
    negation,
    too_deep,
)

SUPPORTED = (
    "supported are columns compared with values by = <> != < <= > >= IN BETWEEN LIKE and IS NULL, joined by AND OR NOT "
    "and parentheses"
)
_TOKENS = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<text>'[^']*(?:''[^']*)*')
    | (?P<quoted>"[^"]*(?:""[^"]*)*"|`[^`]*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<operator><>|!=|<=|>=|=|<|>)
    | (?P<sign>[(),-])""",
    re.VERBOSE,
)
_KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", "NULL", "TRUE", "FALSE"})
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LONGEST_NUMBER = 40  # characters; Python refuses to read very long ones


class _Token(NamedTuple):
    kind: str  # number, text, column, operator, end; a keyword or sign is its own kind
    text: str
    at: int


def parse_text(text: str) -> Condition:
    """Return the tree of a condition in SQL."""
    if len(text) > MAX_CHARACTERS:
        raise Unusable(f"it has {len(text):,} characters, {MAX_CHARACTERS:,} are allowed")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise Unusable("it is not valid Unicode")
    return _Parser(_tokens(text)).whole()


def _tokens(text: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKENS.match(text, at)
        if found is None:
            if text[at] in "'\"`":
                raise Unusable(f"the quote at character {at + 1} is not closed")
            raise Unusable(f"unexpected {text[at]!r} at character {at + 1}; {SUPPORTED}")
        kind, content = str(found.lastgroup), found.group()
        if kind == "word" and content.upper() in _KEYWORDS:
            kind = content.upper()
        elif kind == "word":
            kind = "column"
        elif kind == "quoted":
            kind, content = "column", content[1:-1].replace('""', '"') if content[0] == '"' else content[1:-1]
        elif kind == "text":
            content = content[1:-1].replace("''", "'")
        elif kind == "sign":
            kind = content
        if kind != "space":
            tokens.append(_Token(kind, content, at))
        at = found.end()
    tokens.append(_Token("end", "", at))
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.at, self.depth = tokens, 0, 0

    def whole(self) -> Condition:
        condition = self._condition()
        if self._next.kind != "end":
            raise self._unexpected()
        return condition

    # ---------------------------------------------------------------- conditions

    def _condition(self) -> Condition:
        parts = [self._term()]
        while self._take("OR"):
            parts.append(self._term())
        return any_of(parts)

    def _term(self) -> Condition:
        parts = [self._factor()]
        while self._take("AND"):
            parts.append(self._factor())
        return all_of(parts)

    def _factor(self) -> Condition:
        negated = False
        while self._take("NOT"):
            negated = not negated
        if self._take("("):
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise too_deep()
            condition = self._condition()
            self._expect(")")
            self.depth -= 1
        else:
            condition = self._comparison()
        return negation(condition) if negated else condition

    def _comparison(self) -> Condition:
        if self._next.kind == "column" and not self._is_dated():
            return self._test(self._column())
        value = self._value()
        operator = self._operator()
        if operator is None or self._next.kind != "column":
            raise Unusable(f"a value can only be compared with a column; {SUPPORTED}")
        return Compare(self._column(), _MIRRORED[operator], value)

    def _test(self, column: str) -> Condition:
        """Return what follows a column; a column alone must be true."""
        operator = self._operator()
        if operator is not None:
            return Compare(column, operator, self._value())
        if self._take("IS"):
            negated = self._take("NOT")
            self._expect("NULL")
            return IsNull(column, negated)
        if self._take("NOT"):
            if self._next.kind not in ("IN", "BETWEEN", "LIKE"):
                raise self._unexpected()
            return negation(self._test(column))
        if self._take("IN"):
            return OneOf(column, self._values())
        if self._take("BETWEEN"):
            low = self._value()
            self._expect("AND")
            return all_of([Compare(column, ">=", low), Compare(column, "<=", self._value())])
        if self._take("LIKE"):
            return Like(column, self._expect("text"))
        return Compare(column, "=", True)

    # ---------------------------------------------------------------- values and names

    def _values(self) -> tuple[Value, ...]:
        self._expect("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._expect(")")
        return tuple(values)

    def _value(self) -> Value:
        if self._take("-"):
            return -_number(self._expect("number"))
        if self._is_dated():
            of_day = self._expect("column").upper() == "DATE"
            return (parse_day if of_day else parse_moment)(self._expect("text"))
        token = self._next
        if token.kind not in ("number", "text", "TRUE", "FALSE", "NULL"):
            raise self._unexpected()
        self.at += 1
        if token.kind == "number":
            return _number(token.text)
        return token.text if token.kind == "text" else {"TRUE": True, "FALSE": False, "NULL": None}[token.kind]

    def _is_dated(self) -> bool:
        """Return whether DATE '...' or TIMESTAMP '...' follows; a column may have these names too."""
        return self._next.text.upper() in ("DATE", "TIMESTAMP") and self.tokens[self.at + 1].kind == "text"

    def _column(self) -> str:
        name = self._expect("column")
        if self._next.kind == "(":
            raise Unusable(f"functions such as {name[:60]!r} are not supported; {SUPPORTED}")
        return name

    def _operator(self) -> str | None:
        token = self._next
        if token.kind != "operator":
            return None
        self.at += 1
        return "<>" if token.text == "!=" else token.text

    # ---------------------------------------------------------------- tokens

    @property
    def _next(self) -> _Token:
        return self.tokens[self.at]

    def _take(self, kind: str) -> bool:
        taken = self._next.kind == kind
        self.at += taken
        return taken

    def _expect(self, kind: str) -> str:
        if self._next.kind != kind:
            raise self._unexpected()
        self.at += 1
        return self.tokens[self.at - 1].text

    def _unexpected(self) -> Unusable:
        token = self._next
        if token.kind == "end":
            return Unusable(f"it ends too early; {SUPPORTED}")
        if token.kind == "column" and self.tokens[self.at - 1].kind == "operator":
            return Unusable(f"{token.text[:60]!r} is not a value (text stands in single quotes); {SUPPORTED}")
        return Unusable(f"unexpected {token.text[:60]!r} at character {token.at + 1}; {SUPPORTED}")


def _number(text: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise Unusable(f"the number {text[:20]}... is too long")
    return int(text) if text.isdigit() else float(text)
