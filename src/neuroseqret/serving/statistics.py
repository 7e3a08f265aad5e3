"""What the corpus holds, for a page's filters: lengths, marks, groups, values of columns."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pyarrow as pa

from neuroseqret.data.statistics import describe
from neuroseqret.index.view import View
from neuroseqret.serving import replies

_SAMPLED = 20_000  # sequences whose events are counted
_VALUES = 100  # per column


class Statistics:
    """The statistics of the newest commit that was asked for, as JSON."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version, self._found = -1, b""

    def of(self, view: View) -> bytes:
        """Return the statistics of a commit."""
        with self._lock:
            if view.version != self._version:
                self._found, self._version = replies.dumps(statistics_of(view)), view.version
            return self._found


def kind_of(type: pa.DataType) -> str:
    """Return the type of a column as the interface names it."""
    plain = type.value_type if pa.types.is_dictionary(type) else type
    if pa.types.is_string(plain) or pa.types.is_large_string(plain) or pa.types.is_string_view(plain):
        return "text"
    if pa.types.is_boolean(plain):
        return "boolean"
    if pa.types.is_integer(plain) or pa.types.is_floating(plain) or pa.types.is_decimal(plain):
        return "number"
    return "date" if pa.types.is_timestamp(plain) or pa.types.is_date(plain) else "other"


def columns_of(view: View) -> list[dict[str, str]]:
    """Return names and types of the metadata columns."""
    schema = view.snapshot.hot.rows.schema
    tail = view.snapshot.tail_rows.schema
    found = {name: schema.field(name).type for name in view.columns}
    found |= {name: tail.field(name).type for name in view.columns if name not in schema.names}
    return [{"name": name, "type": kind_of(type)} for name, type in found.items() if name != "group"]


def statistics_of(view: View) -> dict[str, Any]:
    """Count: columns and groups over all rows, events over at most 20,000 of them."""
    everything = view.sample(len(view.snapshot), 0)
    some = np.sort(everything[:_SAMPLED])
    sample = view.sequences(some) if len(some) else None
    scale = len(everything) / max(len(some), 1)
    return {
        "sequences": len(everything),
        "version": view.version,
        "sampled": len(some),
        **(_of_events(sample, scale) if sample is not None else _NO_EVENTS),
        "groups": _values(view.snapshot.column("group", everything))[0] if "group" in view.columns else [],
        "columns": [_column(view, one["name"], one["type"], everything) for one in columns_of(view)],
    }


_NO_EVENTS: dict[str, Any] = {"events": 0, "lengths": {"edges": [], "counts": []}, "times": {}, "marks": []}


def _of_events(sample: Any, scale: float) -> dict[str, Any]:
    found = describe(sample)
    names = sample.mark_names
    numbers, counts = np.unique(sample.marks, return_counts=True)
    by_number = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    known = range(len(names)) if names is not None else sorted(by_number)
    return {
        "events": round(found.events * scale),
        "lengths": {
            "min": found.length_min,
            "median": found.length_median,
            "max": found.length_max,
            "edges": found.lengths.edges,
            "counts": [round(count * scale) for count in found.lengths.counts],
        },
        "times": {
            "first": found.first_time,
            "last": found.last_time,
            "median_span": found.span_median,
            "median_gap": found.gap_quantiles.get(0.5),
            "unit": found.time_unit,
        },
        "marks": [
            {"name": names[mark] if names is not None else mark, "events": round(by_number.get(mark, 0) * scale)}
            for mark in known
        ],
    }


def _values(column: pa.Array) -> tuple[list[dict[str, Any]], int]:
    """Return the most frequent values with their counts, and how many different values there are."""
    counted = pa.compute.value_counts(column.drop_null())
    values, counts = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
    order = np.argsort(-counts, kind="stable")[:_VALUES]
    shown = values.take(pa.array(order)).to_pylist()
    return [{"value": v, "sequences": n} for v, n in zip(shown, counts[order].tolist(), strict=True)], len(values)


def _column(view: View, name: str, kind: str, rows: np.ndarray) -> dict[str, Any]:
    column = view.snapshot.column(name, rows)
    found: dict[str, Any] = {"name": name, "type": kind, "missing": column.null_count}
    if kind == "other":
        return {**found, "distinct": 0, "values": []}
    found["values"], found["distinct"] = _values(column)
    if kind in ("number", "date") and len(column) > column.null_count:
        found |= pa.compute.min_max(column).as_py()
    return found
