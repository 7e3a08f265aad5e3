"""Cut sequences into windows, by number of events or by duration, without a loop over sequences.

A window keeps its parent's id (`parent`), the index of its first event in the parent (`offset`), the
parent's group and metadata, and the original times; `start` and `end` are the window's own. Its id is
`parent[offset:stop]`, unique as long as the parents' ids are.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.errors import UserError
from neuroseqret.sequences import STRING, EventSequences, FloatArray, IntArray


def cut(
    sequences: EventSequences,
    events: int | None = None,
    duration: float | None = None,
    step: float | None = None,
    min_events: int = 1,
) -> EventSequences:
    """Windows of `events` events each, or of `duration` time each.

    `step` is the distance between two windows' beginnings, in events or in time; without it windows do not
    overlap. The rest at a sequence's end that fills no whole window becomes a shorter one. Windows with fewer
    than `min_events` events are left out (so are the empty windows of a quiet spell).
    """
    if (events is None) == (duration is None):
        raise UserError("say either how many events or which duration a window has")
    size = events if events is not None else duration
    assert size is not None
    step = size if step is None else step
    if not (size > 0 and step > 0 and np.isfinite(size) and np.isfinite(step)):
        raise UserError(f"windows need a positive size and step, not {size} and {step}")
    if events is not None:
        if events != int(events) or step != int(step):
            raise UserError(f"windows by events need whole numbers, not {events} and {step}")
        parent, begin, stop = _by_count(sequences.lengths, int(events), int(step))
        first = sequences.offsets[parent] + begin
        last = sequences.offsets[parent] + np.maximum(stop - 1, 0)
        starts, ends = sequences.times[first], sequences.times[last]
    else:
        parent, begin, stop, starts, ends = _by_duration(sequences, float(size), float(step))
    keep = stop - begin >= min_events
    parent, begin, stop, starts, ends = (a[keep] for a in (parent, begin, stop, starts, ends))
    return _assemble(sequences, parent, begin, stop, starts, ends)


def _by_count(lengths: IntArray, size: int, step: int) -> tuple[IntArray, IntArray, IntArray]:
    """Parent row, first and one-past-last event of every window: a new one only while it adds events."""
    number = np.maximum(np.ceil((lengths - size) / step).astype(np.int64), 0) + 1
    number[lengths == 0] = 0
    parent, rank = _repeat_ranks(number)
    begin = rank * step
    return parent, begin, np.minimum(begin + size, lengths[parent])


def _by_duration(
    sequences: EventSequences, size: float, step: float
) -> tuple[IntArray, IntArray, IntArray, FloatArray, FloatArray]:
    """Windows [s + k step, s + k step + size) from each sequence's start s; the last includes its end."""
    lengths, offsets, times = sequences.lengths, sequences.offsets, sequences.times
    filled = lengths > 0
    first = np.where(filled, times[np.minimum(offsets[:-1], max(len(times) - 1, 0))], 0.0) if len(times) else lengths
    last = np.where(filled, times[np.maximum(offsets[1:] - 1, 0)], 0.0) if len(times) else lengths
    begin_at = first if sequences.starts is None else sequences.starts
    with np.errstate(over="ignore"):
        number = np.maximum(np.floor((last - begin_at - size) / step) + 1, 0) + 1
    number = np.where(filled, number, 0)
    if number.sum() > 1e9:
        raise UserError(f"a step of {step:g} makes {number.sum():.3g} windows; take a longer one")
    parent, rank = _repeat_ranks(number.astype(np.int64))
    starts = begin_at[parent] + rank * step
    ends = starts + size
    begin = _search_in_rows(sequences, parent, starts)
    stop = _search_in_rows(sequences, parent, ends)
    return parent, begin, stop, starts, ends


def _repeat_ranks(number: IntArray) -> tuple[IntArray, IntArray]:
    """Rows repeated `number` times, and the running rank within each row."""
    parent = np.repeat(np.arange(len(number)), number)
    rank = np.arange(len(parent)) - np.repeat(np.cumsum(number) - number, number)
    return parent, rank


def _search_in_rows(sequences: EventSequences, rows: IntArray, values: FloatArray) -> IntArray:
    """`searchsorted(times of row, value, side="left")` for many (row, value) pairs by one bisection."""
    low, high = np.zeros(len(rows), np.int64), sequences.lengths[rows]
    base, times = sequences.offsets[rows], sequences.times
    while (open_ := low < high).any():
        middle = (low + high) // 2
        below = open_ & (times[np.minimum(base + middle, len(times) - 1)] < values)
        low = np.where(below, middle + 1, low)
        high = np.where(open_ & ~below, middle, high)
    return low


def _assemble(
    sequences: EventSequences,
    parent: IntArray,
    begin: IntArray,
    stop: IntArray,
    starts: FloatArray,
    ends: FloatArray,
) -> EventSequences:
    lengths = stop - begin
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    source = np.repeat(sequences.offsets[parent] + begin - offsets[:-1], lengths) + np.arange(offsets[-1])
    parents = sequences.ids.take(pa.array(parent))
    first, last = (pa.array(a).cast(STRING) for a in (begin, stop))
    left, colon, right, nothing = (pa.scalar(text, STRING) for text in ("[", ":", "]", ""))
    ids = pc.binary_join_element_wise(parents, left, first, colon, last, right, nothing)
    rest = sequences.metadata.drop_columns(
        [c for c in ("parent", "offset") if c in sequences.metadata.column_names]
    ).take(pa.array(parent))
    groups = sequences.groups
    return EventSequences.from_arrays(
        sequences.times[source],
        sequences.marks[source],
        offsets,
        ids=ids,
        starts=starts,
        ends=ends,
        groups=None if groups is None else groups.take(pa.array(parent)),
        metadata={
            **{name: rest.column(name).combine_chunks() for name in rest.column_names},
            "parent": parents,
            "offset": pa.array(begin),
        },
        mark_names=sequences.mark_names,
        time_unit=sequences.time_unit,
        validate=False,
    )
