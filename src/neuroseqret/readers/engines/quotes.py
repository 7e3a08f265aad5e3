"""Quoted fields of a CSV: what is outside of them, and on which line of the file a row begins.

Arrow's parser counts rows, but a row may take several lines, and blank lines are not rows. The file is read line by
line only to say where an error is.
"""

from __future__ import annotations

import io
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from os import PathLike

from neuroseqret.readers.engines.text import BYTE_ORDER_MARK, open_bytes

DELIMITERS = ",;\t|"
#: A quoted field, from one delimiter or line end to the next.
_QUOTED = re.compile(rf'(^|[{DELIMITERS}])"[^"]*(?:""[^"]*)*"(?=[{DELIMITERS}\r\n]|\Z)', re.MULTILINE)
_NEWLINE = re.compile(r"[\r\n]")


def unquoted_header(text: str) -> str:
    """Return the first row that is not blank, without its quoted fields, so that it is one line."""
    header, at = "", 0
    for field in _QUOTED.finditer(text):
        header, at = (header + text[at : field.end(1)]).lstrip("\r\n"), field.end()
        if _NEWLINE.search(header):
            break
    else:
        header = (header + text[at:]).lstrip("\r\n")
    return _NEWLINE.split(header, 1)[0]


def line_of_row(path: str | PathLike[str], delimiter: str, row: int) -> int | None:
    """Return the line, from 1, on which a row begins (the header is row 0), or None if lines end in CR alone."""
    return next(islice((line for line, _ in _rows(path, delimiter)), row, None), None)


def unclosed_quote(path: str | PathLike[str], delimiter: str) -> int | None:
    """Return the line, from 1, of a quote that is never closed; None if there is none."""
    last = deque(_rows(path, delimiter), maxlen=1)
    return last[0][1] if last else None


def _rows(path: str | PathLike[str], delimiter: str) -> Iterator[tuple[int, int | None]]:
    """Yield the line on which each row begins, and for the last row the line of a quote that stays open, if any."""
    opening = re.compile(rb'(?:^|(?<=[\r%b]))"' % re.escape(delimiter).encode())
    begin, opened = 0, None
    with open_bytes(path) as stream:
        for number, line in enumerate(io.BufferedReader(stream, 1 << 20), 1):
            text = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            begin = number if opened is None else begin
            opened = _open_behind(text, number, opened, opening) if b'"' in text else opened
            if opened is None and text.strip(b"\r\n"):
                yield begin, None
    if opened is not None:
        yield begin, opened


def _open_behind(line: bytes, number: int, opened: int | None, opening: re.Pattern[bytes]) -> int | None:
    """Return the line of the quote that is still open after this line; None if none is."""
    at = 0
    while True:
        if opened is None:
            found = opening.search(line, at)
            if found is None:
                return None
            opened, at = number, found.end()
        else:
            at = line.find(b'"', at)
            if at < 0:
                return opened
            if line[at + 1 : at + 2] == b'"':  # a doubled quote is part of the text
                at += 2
            else:
                opened, at = None, at + 1
