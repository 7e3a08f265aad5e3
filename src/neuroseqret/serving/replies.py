"""Sequences, hits and explanations as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import orjson
from starlette.responses import Response

from neuroseqret.data.sequences import EventSequence
from neuroseqret.explanation import Explanation
from neuroseqret.index.hit import Hit

_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
EVENTS = "events"


def dumps(content: Any) -> bytes:
    """Return JSON; NaN and infinity become null, what JSON does not know becomes text."""
    return orjson.dumps(content, default=str, option=_OPTIONS)


def reply(content: Any, status: int = 200) -> Response:
    """Return a JSON answer."""
    return Response(dumps(content), status, media_type="application/json")


def events(sequence: EventSequence) -> dict[str, Any]:
    """Return times, marks (by name if they have names), start and end."""
    names = sequence.mark_names
    marks = sequence.marks if names is None else [names[mark] for mark in sequence.marks.tolist()]
    found: dict[str, Any] = {"times": np.ascontiguousarray(sequence.times), "marks": marks}
    if names is None:
        found["marks"] = np.ascontiguousarray(sequence.marks)
    found |= {name: value for name in ("start", "end") if (value := getattr(sequence, name)) is not None}
    if values := _values(sequence.metadata):
        found["values"] = values
    return found


def chosen(metadata: Mapping[str, Any], fields: Sequence[str] | None) -> dict[str, dict[str, Any]]:
    """Return the metadata that were asked for (all if `fields` is None) as `metadata` and `values`, those there are."""
    asked = {name: value for name, value in metadata.items() if fields is None or name in fields}
    values = _values(asked)
    plain = {name: value for name, value in asked.items() if value is not None and name not in values}
    return {name: part for name, part in (("metadata", plain), ("values", values)) if part}


def _values(metadata: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return the columns that have one number per event: lists of numbers."""
    return {
        name: value
        for name, value in metadata.items()
        if isinstance(value, list) and all(isinstance(one, (int, float, type(None))) for one in value)
    }


def sequence(one: EventSequence, fields: Sequence[str] | None, with_events: bool) -> dict[str, Any]:
    """Return a stored sequence."""
    found: dict[str, Any] = {"id": one.id}
    if with_events:
        found |= events(one)
    if one.group is not None:
        found["group"] = one.group
    return found | chosen(one.metadata, fields)


def hit(one: Hit, fields: Sequence[str] | None, stored: EventSequence | None) -> dict[str, Any]:
    """Return a hit, with the events of the stored sequence if it is given."""
    found: dict[str, Any] = {"rank": one.rank, "score": one.score, "id": one.id}
    if one.group is not None:
        found["group"] = one.group
    found |= chosen(one.metadata, fields)
    if one.window is not None:
        found |= {name: getattr(one, name) for name in ("window", "offset", "stop", "start", "end")}
    if stored is not None:
        found |= events(stored)
    return found


def explanation(why: Explanation, pairs: bool) -> dict[str, Any]:
    """Return a score split over events; rounding to 7 digits halves the answer."""
    found = {
        "id": why.hit.id,
        "score": why.score,
        "similarity": why.similarity,
        "parts": why.parts,
        "of_query_events": _short(why.of_query_events),
        "of_hit_events": _short(why.of_hit_events),
        "strongest": [{"query_event": i, "hit_event": j, "part": part} for i, j, part in why.strongest()],
    }
    return {**found, "pairs": _short(why.pairs)} if pairs else found


def _short(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(np.round(values, 7))
