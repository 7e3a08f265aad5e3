"""Rows of the store as Milvus holds them, and back.

A collection has few fields of its own: serial, key, id, vector, and one JSON field with everything else that a hit
shows or a condition may ask for. Milvus cannot add columns later (before 2.6) and knows no nulls (before 2.5); a JSON
field takes any columns, and one without a value is left out.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.candidates.finder import Vectors
from neuroseqret.errors import DataError
from neuroseqret.index.engines.milvus_filter import ID, VALUES, plain_value
from neuroseqret.index.rows import embeddings_of, list_lengths
from neuroseqret.index.store import CHECK, DIGEST, EMBEDDING, KEY, PARENT, SERIAL

LENGTH = "nsr_length"  # number of events of a window
CODE = "nsr_code"
LONGEST = 65_535  # bytes of a text, and of the JSON of a row
_NUMBER = 64  # bytes of a number, a date or a truth value in JSON, at most
_HIDDEN = ("id", "times", "marks", SERIAL, KEY, EMBEDDING, DIGEST, CHECK)
_DAY_0, _TIME_0 = date(1970, 1, 1), datetime(1970, 1, 1)


def to_entities(rows: pa.Table, dimension: int, codes: Sequence[bytes] | None = None) -> list[dict[str, Any]]:
    """Return rows of the store for `insert`; with binary codes, embeddings go along as text.

    The server holds one vector per row (before 2.4). As text, embeddings come back ten times faster than as an array.
    """
    embeddings = embeddings_of(rows.column(EMBEDDING).combine_chunks(), dimension)
    serials, keys, ids = (rows.column(name).to_pylist() for name in (SERIAL, KEY, "id"))
    values = _values(rows)
    made = []
    for at, serial in enumerate(serials):
        vector = (
            {EMBEDDING: embeddings[at]}
            if codes is None
            else {CODE: codes[at], EMBEDDING: base64.b64encode(embeddings[at].tobytes()).decode()}
        )
        made.append({SERIAL: serial, KEY: keys[at], ID: ids[at], VALUES: values[at], **vector})
    return made


def to_vectors(entities: Sequence[dict[str, Any]], as_text: bool) -> Vectors:
    """Return the embeddings of entities: (entities, D)."""
    found = [entity[EMBEDDING] for entity in entities]
    if as_text:
        return np.frombuffer(b"".join(map(base64.b64decode, found)), "<f4").reshape(len(found), -1)
    return np.asarray(found, np.float32)


def to_record(entity: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """Return id, group, window and metadata of an entity, as a snapshot's records have them."""
    record = {"id": entity[ID]}
    for name, value in entity[VALUES].items():
        if name == LENGTH:
            record[name] = value
        elif name in schema.names and is_kept(schema.field(name).type):
            record[name] = _back(value, schema.field(name).type)
    return record


def is_kept(kind: pa.DataType) -> bool:
    """Return whether the values of a column are kept in Milvus; of others, only whether there is one."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    of = pa.types
    return bool(
        of.is_string(kind)
        or of.is_large_string(kind)
        or of.is_string_view(kind)
        or of.is_boolean(kind)
        or of.is_integer(kind)
        or of.is_floating(kind)
        or of.is_decimal(kind)
        or of.is_date(kind)
        or of.is_timestamp(kind)
    )


def _values(rows: pa.Table) -> list[dict[str, Any]]:
    """Return the JSON of every row."""
    made: list[dict[str, Any]] = [{} for _ in range(rows.num_rows)]
    for field in rows.schema:
        if field.name in _HIDDEN or pa.types.is_null(field.type):
            continue
        column = rows.column(field.name)
        if column.null_count == rows.num_rows:
            continue
        for value, row in zip(_python_values(column), made, strict=True):
            if value is not None:
                row[field.name] = _plain(value)
    if PARENT in rows.column_names and rows.column(PARENT).null_count < rows.num_rows:
        for length, row in zip(list_lengths(rows.column("marks").combine_chunks()).tolist(), made, strict=True):
            row[LENGTH] = length
    return made


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column; times as the clock of their zone shows them, which conditions are written in."""
    kind = column.type
    if not is_kept(kind):
        return [True if there else None for there in column.is_valid().to_pylist()]
    if pa.types.is_timestamp(kind):
        clock = pc.local_timestamp(column) if kind.tz is not None else column
        column = clock.cast(pa.timestamp("us"), safe=False)
    values: list[Any] = column.to_pylist()
    return values


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # `_back` reads nan, inf and -inf
    return plain_value(value)


def _back(value: Any, kind: pa.DataType) -> Any:
    """Return a value of JSON as the store has it."""
    if pa.types.is_timestamp(kind):
        clock = pa.array([_TIME_0 + timedelta(microseconds=value)], pa.timestamp("us"))
        if kind.tz is not None:
            clock = pc.assume_timezone(clock, kind.tz, ambiguous="earliest", nonexistent="earliest")
        return clock.cast(kind)[0].as_py()
    if pa.types.is_date(kind):
        return _DAY_0 + timedelta(days=value)
    if pa.types.is_decimal(kind):
        return pa.scalar(Decimal(repr(value))).cast(kind).as_py()
    return float(value) if pa.types.is_floating(kind) else value


def check_rows(rows: pa.Table) -> None:
    """Raise a `DataError` if a row is larger than Milvus takes, or has a number that it does not have.

    Only rows whose size may be too large, by an upper bound, are written as JSON to know it.
    """
    most = np.zeros(rows.num_rows, np.int64)
    for field in rows.schema:
        column = rows.column(field.name)
        if field.name == "id":
            _refuse_long_ids(column)
        if field.name in _HIDDEN:
            continue
        most += 6 * len(field.name) + _NUMBER
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if kind in (pa.string(), pa.large_string(), pa.string_view()):
            sizes = pc.binary_length(column.cast(pa.large_string()))
            most += 6 * pc.fill_null(sizes, 0).to_numpy()  # JSON may write 6 characters for a byte
        elif kind == pa.uint64():
            _refuse_beyond_64_bits(rows, field.name, column.cast(kind))
    for at in np.flatnonzero(most > LONGEST).tolist():
        row = rows.slice(at, 1)
        size = len(json.dumps(_values(row)[0], ensure_ascii=False).encode())
        if size > LONGEST:
            raise DataError(
                f"its metadata take {size:,} bytes, Milvus takes {LONGEST:,} per row",
                sequence=row.column("id")[0].as_py(),
                remedy="shorten or leave out the longest column",
            )


def _refuse_long_ids(ids: pa.ChunkedArray) -> None:
    sizes = pc.binary_length(ids).to_numpy()
    if len(sizes) and sizes.max() > LONGEST:
        raise DataError(
            f"the id has {sizes.max():,} bytes, Milvus takes {LONGEST:,}",
            sequence=f"{ids[int(sizes.argmax())].as_py()[:60]}...",
            remedy="give it a shorter one",
        )


def _refuse_beyond_64_bits(rows: pa.Table, name: str, column: pa.ChunkedArray) -> None:
    beyond = pc.fill_null(pc.greater_equal(column, pa.scalar(2**63, pa.uint64())), False).to_numpy()
    if beyond.any():
        raise DataError(
            f"the number in column {name!r} is beyond the 64 bits of Milvus",
            sequence=rows.column("id")[int(beyond.argmax())].as_py(),
            remedy="store it as text",
        )
