"""Repair flawed sequences: each repair is asked for by name, and the report says what changed.

`neuroseqret.data.validation` finds the flaws and names the repair that mends each of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.columns import event_lists, event_values
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.data.validation import first_occurrences, has_id, wrong_bound
from neuroseqret.errors import UserError


@dataclass
class RepairReport:
    """What a repair changed: number of events or sequences by kind of change."""

    changes: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        done = [f"{count:,} {_singular(what) if count == 1 else what}" for what, count in self.changes.items() if count]
        return ", ".join(done) or "nothing to repair"


def _singular(what: str) -> str:
    return re.sub(r"\b(sequence|event|start|end)s\b", r"\1", what)


def repair(sequences: EventSequences, actions: str | Collection[str]) -> tuple[EventSequences, RepairReport]:
    """Make the named repairs and no others; return the sequences and a report of the changes.

    - `drop`: drop events with a non-finite time or a mark out of range, then sequences without events or id;
    - `sort`: sort the events of each sequence by time; equal times keep their order;
    - `clip`: widen observation windows so that they cover their events;
    - `deduplicate`: keep the first of several sequences with the same id;
    - `deduplicate-events`: keep the first of several events of a sequence with equal time and mark. Such events are no
      flaw (two five-star reviews on one day), so use this only where they are known to be the same event.
    """
    wanted = {actions} if isinstance(actions, str) else set(actions)
    if unknown := wanted - set(REPAIRS):
        raise UserError(f"no repair is called {min(unknown)!r}; choose from {', '.join(REPAIRS)}")
    report = RepairReport()
    for name, mend in REPAIRS.items():
        if name in wanted:
            sequences = mend(sequences, report)
    return sequences, report


def _rows_of_events(sequences: EventSequences) -> IntArray:
    return np.repeat(np.arange(len(sequences)), sequences.lengths)


def keep_events(sequences: EventSequences, order: IntArray) -> EventSequences:
    """Return the batch with only the events of `order`, in that order; `order` may not mix sequences."""
    lengths = np.bincount(_rows_of_events(sequences)[order], minlength=len(sequences))
    cuts = np.concatenate([[0], np.cumsum(lengths)])
    table = sequences.table
    for place, name in enumerate(table.column_names):  # times, marks, and metadata with one value per event
        values = event_values(table.column(name).chunk(0), sequences.lengths)
        if values is not None:
            table = table.set_column(place, name, event_lists(values, order, cuts))
    return EventSequences(table, sequences.mark_names, sequences.time_unit)


def _drop(sequences: EventSequences, report: RepairReport) -> EventSequences:
    good = np.isfinite(sequences.times) & (sequences.marks >= 0)
    if sequences.mark_names is not None:
        good &= sequences.marks < len(sequences.mark_names)
    report.changes["events dropped"] = int((~good).sum())
    if not good.all():
        sequences = keep_events(sequences, np.flatnonzero(good))
    usable = (sequences.lengths > 0) & has_id(sequences.ids)
    report.changes["sequences dropped"] = int((~usable).sum())
    return sequences if usable.all() else sequences[usable]


def _sort(sequences: EventSequences, report: RepairReport) -> EventSequences:
    rows = _rows_of_events(sequences)
    unsortable = np.isin(rows, rows[~np.isfinite(sequences.times)])  # left alone: the error names a place in the file
    order = np.lexsort((np.where(unsortable, 0.0, sequences.times), rows))
    moved = np.unique(rows[order != np.arange(len(order))])
    report.changes["sequences sorted"] = len(moved)
    return keep_events(sequences, order) if len(moved) else sequences


def _deduplicate(sequences: EventSequences, report: RepairReport) -> EventSequences:
    first = first_occurrences(sequences.ids)
    report.changes["sequences with a repeated id dropped"] = int((~first).sum())
    return sequences if first.all() else sequences[first]


def _deduplicate_events(sequences: EventSequences, report: RepairReport) -> EventSequences:
    rows = _rows_of_events(sequences)
    order = np.lexsort((np.arange(len(rows)), sequences.marks, sequences.times, rows))
    r, t, x = rows[order], sequences.times[order], sequences.marks[order]
    again = np.zeros(len(rows), bool)
    again[order[1:]] = (r[1:] == r[:-1]) & (t[1:] == t[:-1]) & (x[1:] == x[:-1])
    report.changes["repeated events dropped"] = int(again.sum())
    return keep_events(sequences, np.flatnonzero(~again)) if again.any() else sequences


def _clip(sequences: EventSequences, report: RepairReport) -> EventSequences:
    edges = dict(zip(("start", "end"), sequences.first_and_last(), strict=True))
    for name, edge in edges.items():
        wrong = wrong_bound(sequences, name)
        report.changes[f"window {name}s moved"] = int(wrong.sum())
        if wrong.any():
            moved = pc.if_else(pa.array(wrong), pa.array(edge), sequences.column(name))
            sequences = sequences.with_column(name, moved)
    return sequences


#: The repairs by name, in the order in which they are made: windows last, when their events are right.
REPAIRS: dict[str, Callable[[EventSequences, RepairReport], EventSequences]] = {
    "drop": _drop,
    "sort": _sort,
    "deduplicate": _deduplicate,
    "deduplicate-events": _deduplicate_events,
    "clip": _clip,
}
