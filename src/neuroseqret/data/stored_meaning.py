"""Mark names and time unit in the metadata of an Arrow schema, where they travel with the columns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from neuroseqret.errors import DataError

#: Key in the metadata of the Arrow schema that holds mark names and time unit, as JSON.
MEANING_KEY = b"neuroseqret"
NamesAndUnit = tuple[tuple[str, ...] | None, str | None]


def with_meaning(table: pa.Table, mark_names: Sequence[str] | None, time_unit: str | None) -> pa.Table:
    """Return the table with mark names and time unit in the metadata of its schema."""
    text = json.dumps({"mark_names": mark_names, "time_unit": time_unit}, ensure_ascii=False)
    return table.replace_schema_metadata({MEANING_KEY: text.encode()})


def meaning_of(table: pa.Table) -> NamesAndUnit:
    """Return the mark names and the time unit that `with_meaning` stored, None for what is missing."""
    text = (table.schema.metadata or {}).get(MEANING_KEY)
    if text is None:
        return None, None
    try:
        found = json.loads(text)
        names, unit = found.get("mark_names"), found.get("time_unit")
        return None if names is None else tuple(map(str, names)), None if unit is None else str(unit)
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(
            f"the entry {MEANING_KEY.decode()!r} of the schema is damaged ({error})", remedy="write the table again"
        ) from error


def one_meaning(meanings: Sequence[NamesAndUnit]) -> NamesAndUnit:
    """Return the mark names and the time unit that all parts share; raise a `DataError` if they differ."""
    if not meanings:
        return None, None
    names, unit = meanings[0]
    for other_names, other_unit in meanings[1:]:
        if other_names != names:
            raise DataError(f"mark names differ: {names} and {other_names}", remedy="number the marks alike")
        if other_unit != unit:
            raise DataError(f"time units differ: {unit} and {other_unit}", remedy="convert one of them")
    return names, unit
