"""Text in CSV that a spreadsheet would run as a formula: written with an apostrophe in front, read without it.

A spreadsheet takes a field that begins with `=`, `+`, `-`, `@`, a tab or a carriage return for a formula, which can
start programs and send data away. An apostrophe in front makes it text. Numbers stay as they are.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.readers.engines.values import NUMBER_PATTERN

_FORMULA = r"^'*[=+@\t\r-]"  # apostrophes count, so that reading takes off just the one that writing put on
_DEFUSED = r"^'('*[=+@\t\r-])"


def defused(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return texts with an apostrophe before everything that a spreadsheet would take for a formula."""
    risky = pc.match_substring_regex(texts, _FORMULA)
    if not pc.any(risky, min_count=0).as_py():
        return texts
    risky = pc.and_not(risky, pc.match_substring_regex(texts, NUMBER_PATTERN))
    return pc.if_else(risky, pc.replace_substring_regex(texts, "^", "'", max_replacements=1), texts)


def restored(texts: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Return texts without the apostrophes that `defused` put in front."""
    if not pc.any(pc.starts_with(texts, "'"), min_count=0).as_py():
        return texts
    return pc.replace_substring_regex(texts, _DEFUSED, r"\1")


def defused_name(name: str) -> str:
    """Return one text as `defused` does."""
    return str(defused(pa.array([name]))[0])


def restored_name(name: str) -> str:
    """Return one text as `restored` does."""
    return str(restored(pa.array([name]))[0])
