"""Whole recordings from raw files, before they are cut into sequences and their values become marks.

A recording is the ordered readings of one source (a video, a device and day, a product, an ECG record): times, each
with a value that is a real number (a change of power, a frequency) or already a mark. `cut` makes windows,
`to_sequences` makes event sequences. All recordings are in flat arrays, so that neither loops over sequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError


@dataclass(frozen=True)
class Windows:
    """How a recording is cut into windows of `events` events that do not overlap.

    `rest` says what happens to the events at the end that fill no window:
    - `drop`: they are left out;
    - `keep`: they become a shorter window if there are `min_events` of them;
    - `spread`: they are spread over the windows of the recording, which then have `events` to `2 * events - 1` events;
    - `shrink`: there is one more window, and all are nearly equal, with `min_events` to `events` events.

    At most `most` windows are taken from the beginning of a recording.
    """

    events: int
    rest: Literal["drop", "keep", "spread", "shrink"] = "drop"
    min_events: int = 1
    most: int | None = None

    def __post_init__(self) -> None:
        if self.events < 1 or self.min_events < 1 or (self.most is not None and self.most < 1):
            raise UserError(f"windows need at least one event, not {self.events} (min_events {self.min_events})")

    def cuts(self, lengths: IntArray) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return recording, position in it, first and one-past-last event of every window."""
        number, rest = np.divmod(lengths, self.events)
        if self.rest == "keep":
            number = number + (rest >= self.min_events)
        elif self.rest == "shrink":
            number = np.where(lengths >= self.min_events, number + (rest > 0), 0)
        kept = number if self.most is None else np.minimum(number, self.most)
        parent = np.repeat(np.arange(len(lengths)), kept)
        position = np.arange(len(parent)) - np.repeat(np.cumsum(kept) - kept, kept)
        if self.rest in ("spread", "shrink"):
            size = lengths[parent] / number[parent]
            begin, stop = (np.rint(k * size).astype(np.int64) for k in (position, position + 1))
        else:
            begin = position * self.events
            stop = np.minimum(begin + self.events, lengths[parent])
        return parent, position, begin, stop


@dataclass(frozen=True)
class Recordings:
    """Recording i owns `times[offsets[i]:offsets[i + 1]]` and as many values; `columns` have one entry per recording.

    The columns `group` and `source` are those of the data folder; any other is metadata.
    """

    times: FloatArray
    values: npt.NDArray[Any]
    offsets: IntArray
    columns: Mapping[str, Sequence[Any] | npt.NDArray[Any] | pa.Array]

    @classmethod
    def from_parts(cls, parts: Iterable[tuple[npt.ArrayLike, npt.ArrayLike, Mapping[str, Any]]]) -> Recordings:
        """Make recordings from (times, values, columns) of each, with sorted times; empty ones are left out."""
        filled = [(np.asarray(t, np.float64), np.asarray(v), c) for t, v, c in parts if len(np.atleast_1d(t))]
        if not filled:
            return cls(np.empty(0), np.empty(0), np.zeros(1, np.int64), {"group": [], "source": []})
        times, values, columns = zip(*filled, strict=True)
        return cls(
            np.concatenate(times),
            np.concatenate(values),
            np.cumsum([0, *map(len, times)]),
            {name: [c[name] for c in columns] for name in columns[0]},
        )

    @classmethod
    def from_events(
        cls, key: IntArray, times: FloatArray, values: npt.NDArray[Any], columns: Mapping[str, npt.NDArray[Any]]
    ) -> Recordings:
        """Make recordings from events in any order, each with the number of its recording, time, value and columns.

        The events of a recording are sorted by time; events at the same time keep their order.
        """
        order = np.lexsort((times, key))
        key = key[order]
        begin = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
        first = order[begin]
        return cls(
            times[order],
            values[order],
            np.append(begin, len(key)).astype(np.int64),
            {name: np.asarray(column)[first] for name, column in columns.items()},
        )

    @classmethod
    def concat(cls, parts: Iterable[Recordings]) -> Recordings:
        """Join parts that have the same columns."""
        given = list(parts)
        columns = given[0].columns if given else ()
        return cls(
            np.concatenate([np.empty(0), *(part.times for part in given)]),
            np.concatenate([part.values for part in given]) if given else np.empty(0),
            np.cumsum(np.concatenate([[0], *(part.lengths for part in given)])).astype(np.int64),
            {name: [value for part in given for value in _plain(part.columns[name])] for name in columns},
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    def take(self, rows: npt.NDArray[Any]) -> Recordings:
        """Return some recordings, selected by rows or mask."""
        rows = np.arange(len(self))[rows]
        return self._pieces(rows, np.zeros(len(rows), np.int64), self.lengths[rows])

    def cut(self, windows: Windows) -> Recordings:
        """Return all windows, each with its `position` in the recording and its first event at time 0."""
        parent, position, begin, stop = windows.cuts(self.lengths)
        cut = self._pieces(parent, begin, stop)
        times = cut.times - np.repeat(cut.times[cut.offsets[:-1]], cut.lengths)
        return Recordings(times, cut.values, cut.offsets, {**cut.columns, "position": position})

    def _pieces(self, parent: IntArray, begin: IntArray, stop: IntArray) -> Recordings:
        lengths = stop - begin
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        picked = np.repeat(self.offsets[parent] + begin - offsets[:-1], lengths) + np.arange(offsets[-1])
        rows = pa.array(parent)
        columns = {
            name: (column if isinstance(column, pa.Array) else pa.array(column)).take(rows)
            for name, column in self.columns.items()
        }
        return Recordings(self.times[picked], self.values[picked], offsets, columns)

    def with_marks(self, marks: npt.NDArray[Any]) -> Recordings:
        """Return the same events with other values."""
        return Recordings(self.times, marks, self.offsets, self.columns)

    def to_sequences(self, mark_names: Sequence[str], time_unit: str) -> EventSequences:
        """Return event sequences; the values must be marks. The observation window is [0, last event]."""
        columns = dict(self.columns)
        groups = columns.pop("group", None)
        return EventSequences.from_arrays(
            self.times,
            self.values,
            self.offsets,
            starts=np.zeros(len(self)),
            ends=self.times[self.offsets[1:] - 1] if len(self) else np.empty(0),
            groups=None if groups is None else pa.array(groups).cast(pa.large_string()),
            metadata=columns,
            mark_names=mark_names,
            time_unit=time_unit,
        )


def _plain(column: Sequence[Any] | npt.NDArray[Any] | pa.Array) -> list[Any]:
    return column.to_pylist() if isinstance(column, pa.Array) else np.asarray(column).tolist()


def thin(
    groups: npt.NDArray[Any], most: int, rng: np.random.Generator, sources: npt.NDArray[Any] | None = None
) -> npt.NDArray[np.bool_]:
    """Return a mask of at most `most` random rows per group, taken from its sources in turn if these are given."""
    group = np.unique(groups, return_inverse=True)[1]
    draw = rng.random(len(group))
    turn = np.zeros(len(group), np.int64)
    if sources is not None:
        turn = _rank(np.unique(sources, return_inverse=True)[1] + group * (len(group) + 1), draw)
    return _rank(group, draw, turn) < most


def _rank(key: IntArray, *order: npt.NDArray[Any]) -> IntArray:
    """Return the rank of each row among the rows with its key; the last of `order` is the primary criterion."""
    rows = np.lexsort((*order, key))
    ordered = key[rows]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(key) else rows
    sizes = np.diff(np.append(first, len(key)))
    rank = np.empty(len(key), np.int64)
    rank[rows] = np.arange(len(key)) - np.repeat(first, sizes)
    return rank


def quantile_edges(values: npt.NDArray[Any], marks: int) -> FloatArray:
    """Return the `marks - 1` edges that divide the values into classes of equal size."""
    if marks < 2:
        raise UserError(f"marks is {marks}; values need at least two marks")
    return np.quantile(values, np.arange(1, marks) / marks)


def by_edges(values: npt.NDArray[Any], edges: FloatArray) -> npt.NDArray[np.int32]:
    """Return the class of each value: the number of edges that it reaches."""
    return np.searchsorted(edges, values, side="right").astype(np.int32)


def edge_names(edges: FloatArray, form: str, unit: str = "") -> list[str]:
    """Return readable names of the classes between edges; `form` is a number format such as `.0f`."""
    texts = [f"{edge:{form}}" for edge in edges]
    inner = [f"{low} to {high}{unit}" for low, high in pairwise(texts)]
    return [f"under {texts[0]}{unit}", *inner, f"{texts[-1]}{unit} or more"]
