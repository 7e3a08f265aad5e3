"""Columns other than times and marks: their names and types in the sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.columns import CANONICAL, REQUIRED
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line
from neuroseqret.readers.engines.times import as_times
from neuroseqret.readers.engines.values import WHOLE_PATTERN


def names_in_sequences(columns: Sequence[str], roles: Mapping[str, str]) -> dict[str, str]:
    """Return the name of each column of a table in the sequences: its role, else its name in the table.

    A column that has the name of a role without having the role becomes `file_id`, `file_times` and so on. A column
    `start`, `end` or `group` that the caller excluded (`"start": None`) is left out.
    """
    own = {source: role for role, source in roles.items()}
    taken = set(columns)
    names = {}
    for column in columns:
        if column in own or column not in CANONICAL:
            names[column] = own.get(column, column)
        elif column in REQUIRED or column in roles:
            names[column] = f"file_{column}"
            while names[column] in taken:
                names[column] += "_"
    return names


def as_column(name: str, values: pa.Array) -> pa.Array:
    """Return `id`, `start`, `end` or `group` in its canonical type; in other columns text becomes large text."""
    try:
        if name in ("id", "group"):
            values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
            return values.cast(pa.large_string())
        if name in ("start", "end"):
            bounds = as_times(values, f"{name!r}", lambda row: (f"in row {row}", None), missing_ok=True)
            return pa.array(bounds, mask=values.is_null().to_numpy(zero_copy_only=False))
        if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
            return values.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {name!r} is {values.type} ({first_line(error)})", remedy="convert the column"
        ) from error
    return values


def numbers_if_all(texts: pa.Array) -> pa.Array:
    """Return ids as int64 if all are whole numbers in their usual spelling (so nothing is lost), else unchanged."""
    plain = pc.match_substring_regex(texts, WHOLE_PATTERN)
    return texts.cast(pa.int64()) if not texts.null_count and pc.all(plain).as_py() else texts
