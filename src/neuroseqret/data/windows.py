"""Cut sequences into windows, by number of events or by duration, without a loop over sequences.

A window has the id of its parent (column `parent`), the position of its first event in the parent (`offset`), the
group, the metadata and the original times of the parent, and its own `start` and `end`. Its id is
`parent[offset:stop]`, which is unique if the ids of the parents are. Columns `parent` and `offset` of the parents are
replaced, so rename columns of your own with these names.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.columns import event_lists, event_values
from neuroseqret.data.sequences import STRING, EventSequences, FloatArray, IntArray
from neuroseqret.errors import DataError, UserError

#: Events of a sequence: a slice, or the first one and the one after the last.
Events = slice | tuple[int, int]


def cut(
    sequences: EventSequences,
    events: int | None = None,
    duration: float | None = None,
    step: float | None = None,
    min_events: int = 1,
) -> EventSequences:
    """Return windows of `events` events each, or of `duration` time each.

    `step` is the distance between the beginnings of two windows, in events or in time; without it windows do not
    overlap. Events at the end of a sequence that fill no whole window become a shorter one. Windows with fewer than
    `min_events` events are left out, and so are windows with the same events as the window before, which small steps in
    time give.

    By events, a window is observed from its first to its last event. By duration, windows are [s + k step, s + k step +
    duration), k = 0, 1, ..., where s is the start of the parent's observation window; a window is not observed longer
    than its parent.
    """
    if (events is None) == (duration is None):
        raise UserError("give either the number of events or the duration of a window, and not both")
    size = float(duration if events is None else events)  # type: ignore[arg-type]
    stride = size if step is None else float(step)
    if not (size > 0 and stride > 0 and np.isfinite(size) and np.isfinite(stride)):
        raise UserError(f"windows need a positive size and step, not {size:g} and {stride:g}")
    if min_events < 1:
        raise UserError(f"min_events is {min_events}; it must be 1 or more, as a sequence needs an event")
    if duration is not None:
        parent, begin, stop, starts, ends = _by_duration(sequences, size, stride)
        enough = (stop - begin >= min_events) & _differs_from_previous(parent, begin, stop)
        chosen = tuple(array[enough] for array in (parent, begin, stop, starts, ends))
        return take_runs(sequences, *chosen)
    if not (size.is_integer() and stride.is_integer()):
        raise UserError(f"windows by events need whole numbers, not {size:g} and {stride:g}")
    parent, begin, stop = _by_count(sequences.lengths, int(size), int(stride))
    enough = stop - begin >= min_events
    return take_runs(sequences, parent[enough], begin[enough], stop[enough])


def take_runs(
    sequences: EventSequences,
    parent: IntArray,
    begin: IntArray,
    stop: IntArray,
    starts: FloatArray | None = None,
    ends: FloatArray | None = None,
) -> EventSequences:
    """Return events `begin[i]:stop[i]` of row `parent[i]`, for every i, as sequences; no run may be empty.

    Without `starts` and `ends` a run is observed from its first to its last event.
    """
    lengths = stop - begin
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    first = sequences.offsets[parent] + begin
    source = np.repeat(first - offsets[:-1], lengths) + np.arange(offsets[-1])
    rows = pa.array(parent)
    parents = sequences.ids.take(rows)
    left, colon, right, nothing = (pa.scalar(text, STRING) for text in ("[", ":", "]", ""))
    from_, to = (pa.array(numbers).cast(STRING) for numbers in (begin, stop))
    metadata, rest = sequences.without_columns("parent", "offset").metadata, {}
    for name in metadata.column_names:
        column = metadata.column(name).chunk(0)
        values = event_values(column, sequences.lengths)  # a value per event stays with its event
        rest[name] = column.take(rows) if values is None else event_lists(values, source, offsets)
    groups = sequences.groups
    return EventSequences.from_arrays(
        sequences.times[source],
        sequences.marks[source],
        offsets,
        ids=pc.binary_join_element_wise(parents, left, from_, colon, to, right, nothing),
        starts=sequences.times[first] if starts is None else starts,
        ends=sequences.times[first + lengths - 1] if ends is None else ends,
        groups=None if groups is None else groups.take(rows),
        metadata={**rest, "parent": parents, "offset": pa.array(begin)},
        mark_names=sequences.mark_names,
        time_unit=sequences.time_unit,
        validate=False,
    )


def joined(windows: EventSequences) -> EventSequences:
    """Return the one sequence that these windows were cut from; the reverse of `cut`.

    It is observed from the first start to the last end of the windows. Windows that leave out events are an error.
    """
    windows = windows[np.argsort(np.asarray(windows.table.column("offset")), kind="stable")]
    parent, offset = windows.table.column("parent")[0], np.asarray(windows.table.column("offset"))
    covered = np.concatenate([[0], np.maximum.accumulate(offset + windows.lengths)[:-1]])  # by the windows before
    if (late := offset > covered).any():
        at = int(np.argmax(late))
        raise DataError(
            f"the windows leave out events {covered[at]} to {offset[at] - 1}",
            sequence=parent.as_py(),
            remedy="use the id of one of its windows",
        )
    first = windows.offsets[:-1] + np.minimum(covered - offset, windows.lengths)
    source = np.concatenate([np.arange(*bounds) for bounds in zip(first, windows.offsets[1:], strict=True)])
    ends = np.array([0, len(source)])
    metadata, rest = windows.without_columns("parent", "offset").metadata, {}
    for name in metadata.column_names:
        column = metadata.column(name).chunk(0)
        values = event_values(column, windows.lengths)
        rest[name] = column.slice(0, 1) if values is None else event_lists(values, source, ends)
    starts, stops_at = windows.observed()
    return EventSequences.from_arrays(
        windows.times[source],
        windows.marks[source],
        ends,
        ids=[parent.as_py()],
        starts=starts[:1],
        ends=stops_at.max(keepdims=True),
        groups=None if windows.groups is None else windows.groups.slice(0, 1),
        metadata=rest,
        mark_names=windows.mark_names,
        time_unit=windows.time_unit,
        validate=False,
    )


def part(sequences: EventSequences, events: Events) -> EventSequences:
    """Return the same run of events of every sequence, with ids such as `a[5:20]`."""
    chosen = events if isinstance(events, slice) else _as_slice(events)
    if chosen.step not in (None, 1):
        raise UserError(f"events must follow each other; leave out the step {chosen.step}")
    try:
        bounds = [chosen.indices(length) for length in sequences.lengths.tolist()]
    except TypeError:
        raise UserError(f"events are counted by whole numbers, not {chosen.start!r} to {chosen.stop!r}") from None
    begin, stop = (np.array([bound[side] for bound in bounds], np.int64) for side in (0, 1))
    if (empty := stop <= begin).any():
        row = int(np.argmax(empty))
        raise UserError(
            f"sequence {sequences.ids[row].as_py()} has {sequences.lengths[row]} events, none of them in events "
            f"{_bound(chosen.start)}:{_bound(chosen.stop)}; choose others"
        )
    return take_runs(sequences, np.arange(len(sequences)), begin, stop).without_columns("parent", "offset")


def _as_slice(events: object) -> slice:
    if not isinstance(events, (tuple, list)) or len(events) != 2:
        raise UserError(f"events is a slice or (first, stop), such as slice(5, 20) or (5, 20), not {events!r}")
    return slice(*events)


def _bound(value: int | None) -> str:
    return "" if value is None else str(value)


def _by_count(lengths: IntArray, size: int, step: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return parent row, first and one-past-last event of every window; the last window of a parent adds events."""
    until_covered = np.maximum(-((size - lengths) // step), 0) + 1
    until_over = -(-lengths // step)
    parent, rank = _repeat_ranks(np.minimum(until_covered, until_over))
    begin = rank * step
    return parent, begin, np.minimum(begin + size, lengths[parent])


def _by_duration(
    sequences: EventSequences, size: float, step: float
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Return parent row, first and one-past-last event, start and end of every window."""
    start, end = sequences.observed()
    _, last = sequences.first_and_last()
    filled = np.flatnonzero(sequences.lengths > 0)
    start, end, last = start[filled], end[filled], last[filled]

    def edges(row: IntArray, rank: IntArray | FloatArray) -> FloatArray:
        # Without overlap a window ends exactly where the next one starts, to the last bit.
        return start[row] + ((rank + 1) * step if size == step else rank * step + size)

    every = np.arange(len(filled))
    number = np.maximum(np.floor((last - start - size) / step) + 2, 1)
    if number.sum() > 1e9:
        raise UserError(f"a step of {step:g} makes {number.sum():.3g} windows; choose a longer step")
    # Rounding of the division and of the edges differs; the last window is the first that ends after the last event.
    while (short := edges(every, number - 1) <= last).any():
        number[short] += 1
    while (long := (number > 1) & (edges(every, number - 2) > last)).any():
        number[long] -= 1
    row, rank = _repeat_ranks(number.astype(np.int64))
    starts, ends = start[row] + rank * step, edges(row, rank)
    parent = filled[row]
    begin, stop = (_search_in_rows(sequences, parent, bounds) for bounds in (starts, ends))
    return parent, begin, stop, starts, np.minimum(ends, end[row])


def _differs_from_previous(parent: IntArray, begin: IntArray, stop: IntArray) -> np.ndarray:
    """Return which runs differ from the run before: (n,) bool."""
    different = np.ones(len(parent), bool)
    different[1:] = (np.diff(parent) != 0) | (np.diff(begin) != 0) | (np.diff(stop) != 0)
    return different


def _repeat_ranks(number: IntArray) -> tuple[IntArray, IntArray]:
    """Return the rows, each repeated `number` times, and the running rank within each row."""
    parent = np.repeat(np.arange(len(number)), number)
    rank = np.arange(len(parent)) - np.repeat(np.cumsum(number) - number, number)
    return parent, rank


def _search_in_rows(sequences: EventSequences, rows: IntArray, values: FloatArray) -> IntArray:
    """Return `searchsorted(times of row, value, side="left")` for many (row, value) pairs, by one bisection."""
    low, high = np.zeros(len(rows), np.int64), sequences.lengths[rows]
    base, times = sequences.offsets[rows], sequences.times
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = open_ & (times[np.minimum(base + middle, len(times) - 1)] < values)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    return low
