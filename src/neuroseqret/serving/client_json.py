"""The JSON that the client sends and gets: queries to rows, and rows to sequences and hits.

`described` is what the server says of its index: its columns, and the values of events that its model reads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from neuroseqret.data.meaning import Meaning
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.data.windows import Events
from neuroseqret.errors import UserError
from neuroseqret.index.hit import Hit, Hits, SearchReport
from neuroseqret.processes.event_values import numbers_of

Described = Mapping[str, Any]


def indexed_queries(names: Sequence[str], events: Events | None) -> list[dict[str, Any]]:
    """Return queries with sequences of the index, or with the same part of each."""
    if events is None:
        return [{"id": one} for one in names]
    first, stop = (events.start or 0, events.stop) if isinstance(events, slice) else events
    if stop is None or first < 0 or stop < 0:
        raise UserError("a part of a sequence on a server is (first, stop), both counted from its beginning")
    return [{"id": one, "events": [int(first), int(stop)]} for one in names]


def queries_by_events(queries: EventSequences, described: Described) -> list[dict[str, Any]]:
    """Return queries with the values of events that the index's model reads."""
    rows = [_query(one) for one in queries]
    for name in described.get("values", []):
        numbers, ends = numbers_of(queries, name), queries.offsets.tolist()
        for row, begin, end in zip(rows, ends[:-1], ends[1:], strict=True):
            known = [number if np.isfinite(number) else None for number in numbers[begin:end].tolist()]
            row.setdefault("values", {})[name] = known
    return rows


def _query(one: EventSequence) -> dict[str, Any]:
    names = one.mark_names
    marks: list[Any] = one.marks.tolist() if names is None else [names[mark] for mark in one.marks.tolist()]
    found = {"id": one.id, "times": one.times.tolist(), "marks": marks, "start": one.start, "end": one.end}
    return {name: value for name, value in found.items() if value is not None}


def sequences_of(rows: Sequence[Mapping[str, Any]], meaning: Meaning, described: Described) -> EventSequences:
    """Return stored sequences."""
    number = {name: at for at, name in enumerate(meaning.mark_names or ())}
    made = [
        EventSequence(
            row["id"],
            np.array(row["times"], np.float64),
            np.array([number.setdefault(m, len(number)) if isinstance(m, str) else m for m in row["marks"]], np.int32),
            row.get("start"),
            row.get("end"),
            row.get("group"),
            _metadata(row, described),
        )
        for row in rows
    ]
    if not made:
        return EventSequences.from_lists([])
    return EventSequences.of(made).with_meaning(tuple(number) or None, meaning.time_unit)


def hits_of(result: Mapping[str, Any], described: Described, fetch: Callable[[Sequence[str]], EventSequences]) -> Hits:
    """Return the hits of one query."""
    report = SearchReport(*(result[name] for name in ("method", "corpus", "comparisons", "reranked", "centres")))
    rest = [{name: one[name] for name in one if name not in ("metadata", "values")} for one in result["hits"]]
    hits = [Hit(**fields, metadata=_metadata(one, described)) for fields, one in zip(rest, result["hits"], strict=True)]
    return Hits(hits, result["query"]["id"], report, fetch=fetch)


def _metadata(row: Mapping[str, Any], described: Described) -> dict[str, Any]:
    """Return metadata and values of events together, in the order of the index's columns."""
    found = {**row.get("metadata", {}), **row.get("values", {})}
    columns = [column["name"] for column in described["columns"]]
    return {**{name: found[name] for name in columns if name in found}, **found}
