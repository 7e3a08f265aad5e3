"""Compare Arrow tables of sequences by value, and make a fingerprint of one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from neuroseqret.data.columns import CANONICAL, STRING, is_plain_list


def same_tables(mine: pa.Table, theirs: pa.Table) -> bool:
    """Return True if both tables have the same columns, in the same order, with the same values; see `same_values`.

    Both tables have one chunk per column.
    """
    return mine.column_names == theirs.column_names and all(
        same_values(a.chunk(0), b.chunk(0)) for a, b in zip(mine.columns, theirs.columns, strict=True)
    )


def same_values(mine: pa.Array, theirs: pa.Array) -> bool:
    """Return True if both arrays have equal values, at any depth; null equals null and NaN equals NaN.

    How Arrow encodes text, bytes and lists (as a dictionary, large or not) makes no difference; other types do.
    """
    mine, theirs = _plain(mine), _plain(theirs)
    if len(mine) != len(theirs):
        return False
    if mine.type == theirs.type and mine.equals(theirs):
        return True
    if not mine.is_null().equals(theirs.is_null()):
        return False
    mine, theirs = mine.drop_null(), theirs.drop_null()
    if is_plain_list(mine.type) and is_plain_list(theirs.type):
        lengths = (array.value_lengths().to_numpy() for array in (mine, theirs))
        return np.array_equal(*lengths) and same_values(mine.flatten(), theirs.flatten())
    if pa.types.is_struct(mine.type) and pa.types.is_struct(theirs.type):
        names = ([column.name for column in array.type] for array in (mine, theirs))
        return list(next(names)) == list(next(names)) and all(map(same_values, mine.flatten(), theirs.flatten()))
    if mine.type != theirs.type:
        return False
    if pa.types.is_floating(mine.type):
        return np.array_equal(mine.to_numpy(), theirs.to_numpy(), equal_nan=True)
    return mine.equals(theirs)


def _plain(array: pa.Array) -> pa.Array:
    """Decode dictionaries; return text and bytes in their large form."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string(array.type) or pa.types.is_string_view(array.type):
        return array.cast(STRING)
    if pa.types.is_binary(array.type) or pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return array


def fingerprint(table: pa.Table, mark_names: Sequence[str] | None, time_unit: str | None) -> str:
    """Return a hash of ids, events, windows, groups, sources, splits and meaning; equal content gives equal hashes."""
    digest = hashlib.blake2b(repr((mark_names, time_unit)).encode(), digest_size=16)
    for name in [*CANONICAL, "source", "split"]:
        digest.update(f"|{name}|".encode())
        if name not in table.column_names:
            continue
        column = table.column(name).chunk(0)
        if name in ("times", "marks"):
            digest.update(np.diff(column.offsets.to_numpy()).tobytes())
            digest.update(column.flatten().to_numpy().tobytes())
        else:
            digest.update(repr(column.to_pylist()).encode())
    return digest.hexdigest()
