"""Whatever a user passes as sequences, as `EventSequences`; every public verb that takes sequences calls this first.

One sequence:  an `EventSequence`, a list of (time, mark) pairs, a pair of arrays (times, marks), or a frame that has
               only a time and a mark column.
Many:          `EventSequences`, a list of any of the above, a mapping from ids to them, a frame of pandas or polars or
               an Arrow table with one row per event (and a column of ids) or one row per sequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import frame
from neuroseqret.readers.engines.long_table import CONVENTIONS
from neuroseqret.readers.options import Options

if TYPE_CHECKING:
    import pandas
    import polars

    Frame: TypeAlias = pandas.DataFrame | polars.DataFrame | pa.Table

#: Events as (time, mark) pairs; a mark is a name or a number.
Pairs: TypeAlias = "Sequence[tuple[Any, str | int]]"
#: One sequence or many, in any of the shapes above.
Given: TypeAlias = "EventSequence | EventSequences | Iterable[Any] | Mapping[str, Any] | Frame"
#: Which column of a frame holds what: `id`, `time`, `mark`, `start`, `end`, `group`.
ColumnMap: TypeAlias = "Mapping[str, str | None]"

_SHAPES = (
    "pass EventSequences, an EventSequence, a list of (time, mark) pairs, a data frame of pandas or polars, or an "
    "Arrow table"
)


def as_sequences(given: Any, what: str = "sequences", columns: ColumnMap | None = None) -> EventSequences:
    """Return what a user gave as a batch; `what` names it in errors.

    >>> as_sequences([(0.0, "in"), (2.5, "out")])
    EventSequences(1 sequence, 2 events, 2 marks, lengths 2 to 2)
    >>> as_sequences({"a": [(0.0, "in"), (2.5, "out")], "b": [(1.0, "in")]}).ids.to_pylist()
    ['a', 'b']
    """
    return one_or_many(given, what, columns)[0]


def one_or_many(given: Any, what: str = "sequences", columns: ColumnMap | None = None) -> tuple[EventSequences, bool]:
    """Return what a user gave as a batch, and whether it is one sequence by its type."""
    table = frame.as_table(given)
    if table is not None:
        return _from_table(table, columns)
    if columns is not None and isinstance(given, Mapping):
        raise UserError(f"{what}: a dictionary of columns is not a frame; {_SHAPES}")
    if columns is not None:
        raise UserError("columns names the columns of a data frame; leave it out for other sequences")
    if isinstance(given, (EventSequence, EventSequences)):
        return EventSequences.of(given), isinstance(given, EventSequence)
    if isinstance(given, (str, PathLike)):
        raise UserError(
            f"{what}: {str(given)!r} is a path or an id, not a sequence; read a file with neuroseqret.read, take a "
            "sequence out of an index with index.get(id)"
        )
    if hasattr(given, "corpus") and hasattr(given, "queries"):
        raise UserError(f"{what}: this is a data folder; pass its .queries or its .corpus")
    if isinstance(given, Mapping):
        return _named(given, what), False
    if isinstance(given, Iterable):
        return _from_items(given, what)
    raise UserError(f"{what}: {_kind(given)} is not a sequence of events; {_SHAPES}")


def _from_table(table: pa.Table, columns: ColumnMap | None) -> tuple[EventSequences, bool]:
    """Read a frame; one that has a time and a mark and nothing else is one sequence."""
    options = Options.of(columns)
    one = columns is None and table.num_columns == 2 and _has_only_events(table.column_names)
    if one:
        options = Options.of({"id": None})
    return frame.read(table, options).validate(frame.FRAME), one


def _has_only_events(names: Sequence[str]) -> bool:
    roles = {role for role, known in CONVENTIONS.items() for name in names if name in known}
    return roles == {"times", "marks"}


def _from_items(given: Iterable[Any], what: str) -> tuple[EventSequences, bool]:
    items = list(given)
    if all(isinstance(item, EventSequence) for item in items):
        return EventSequences.of(items), False
    if all(isinstance(item, (EventSequence, EventSequences)) for item in items):
        return EventSequences.concat(items), False
    if not items:
        return EventSequences.from_lists([]), False
    if _is_one(given, items):
        return _assembled(["0"], [_events(given if isinstance(given, tuple) else items, what, 0)]), True
    ids = [str(at) for at in range(len(items))]
    return _assembled(ids, [_events(item, what, id) for id, item in zip(ids, items, strict=True)]), False


def _named(given: Mapping[Any, Any], what: str) -> EventSequences:
    if "times" in given and "marks" in given:
        raise UserError(f"{what}: a dictionary of columns is not a frame; {_SHAPES}")
    return _assembled([str(name) for name in given], [_events(x, what, name) for name, x in given.items()])


def _is_one(given: object, items: Sequence[Any]) -> bool:
    """Return whether these are the events of one sequence, or its times and marks."""
    if _are_arrays(given):
        return True
    first = items[0]
    if isinstance(first, str) or not isinstance(first, (Iterable, EventSequence)):
        return True  # neither events nor sequences; the error comes where events are read
    return isinstance(first, (tuple, list, np.ndarray)) and len(first) > 0 and _is_scalar(first[0])


def _are_arrays(given: object) -> bool:
    """Return whether this is a pair (times, marks) of lists, arrays or columns."""
    if not isinstance(given, tuple) or len(given) != 2:
        return False
    kinds = [isinstance(part, (list, np.ndarray, pa.Array)) or type(part).__name__ == "Series" for part in given]
    return all(kinds) and all(_is_scalar(next(iter(part), 0)) for part in given)


def _is_scalar(value: object) -> bool:
    return isinstance(value, str) or not isinstance(value, (Iterable, EventSequence))


def _events(given: Any, what: str, name: object) -> tuple[list[Any], list[Any]]:
    """Return the times and marks of one sequence: (time, mark) pairs, or a pair (times, marks) of arrays."""
    if isinstance(given, EventSequence):
        names = given.mark_names
        return given.times.tolist(), [mark if names is None else names[mark] for mark in given.marks.tolist()]
    if _are_arrays(given):
        times, marks = (list(part) for part in given)
        if len(times) != len(marks):
            raise DataError(
                f"{len(times)} times but {len(marks)} marks", sequence=name, remedy="give one mark per time"
            )
        return times, marks
    pairs = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, Mapping)) else None
    if pairs is None:
        raise UserError(f"{what}: {_kind(given)} is not a sequence of events; {_SHAPES}")
    for position, pair in enumerate(pairs):
        if not isinstance(pair, (Sequence, np.ndarray)) or isinstance(pair, str) or len(pair) != 2:
            raise DataError(
                f"an event is a pair (time, mark), not {pair!r:.60}", sequence=name, position=position, remedy=_SHAPES
            )
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _assembled(ids: list[str], events: Sequence[tuple[list[Any], list[Any]]]) -> EventSequences:
    """Return sequences of events as the reader of frames reads them: dates become seconds, text becomes numbers."""
    if not ids:
        return EventSequences.from_lists([])
    lengths = [len(times) for times, _ in events]
    columns = {
        "id": pa.array(np.repeat(np.array(ids, object), lengths), pa.string()),
        "time": _column([time for times, _ in events for time in times], "time", "a number or a date"),
        "mark": _column([mark for _, marks in events for mark in marks], "mark", "text or a whole number"),
    }
    if empty := [name for name, length in zip(ids, lengths, strict=True) if not length]:
        raise DataError("has no events", sequence=empty[0], remedy="leave it out")
    return frame.read(pa.table(columns), Options()).validate()


def _column(values: list[Any], what: str, kind: str) -> pa.Array:
    plain = [value.item() if isinstance(value, np.generic) and value.dtype.kind != "M" else value for value in values]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise DataError(
            f"the {what}s of events are of different types ({kinds})", remedy=f"make each {kind}"
        ) from error


def _kind(given: object) -> str:
    return f"{type(given).__name__} ({given!r:.40})" if given is not None else "None"
