"""Parquet with one row per sequence and its events in list columns: the engine of several formats.

The flat arrays are allocated once, at the size that the footers give, and filled batch by batch, several row groups at
a time. So reading a file takes little more memory than its arrays. `scan` reads files larger than memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from os import PathLike

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.lists import EVENT_ROLES, ListLayout, join_column
from neuroseqret.readers.engines.marks import sorted_names
from neuroseqret.readers.engines.parquet import ParquetParts, RowGroup, damage_as_data_error, meaning_of
from neuroseqret.readers.engines.times import check_unit
from neuroseqret.readers.options import Options

_EVENTS_PER_BATCH = 1 << 17
_MOST_THREADS = 4  # each needs memory for a batch and its pages


class ListParquet:
    """Parquet whose events are in list columns; `roles` as in `ListLayout`."""

    def __init__(self, path: str | PathLike[str], roles: Mapping[str, str | None], options: Options) -> None:
        """Open the file; mark names and time unit of the options win over those in the file."""
        self.path = path
        with damage_as_data_error(path):
            self._parts = ParquetParts(path)
            schema = self._parts.schema
            own_names, own_unit = meaning_of(schema, path)
            self._unit = options.time_unit or own_unit
            missing_ok = not options.validate
            self._layout = ListLayout.of(schema, roles, options.mark_names or own_names, missing_ok)
            check_unit(self._layout.time_type, options.time_unit)
            times = self._layout.roles["times"]
            # Where the events of each row group begin; with empty lists this is more room than needed.
            self._room = [0, *accumulate(self._parts.values(group, times) for group in self._parts.row_groups())]
            if self._layout.needs_names:
                texts = self._parts.batches(self._rows_at_a_time(), [self._layout.roles["marks"]])
                names = sorted_names(batch.column(0).flatten() for batch in texts)
                self._layout = ListLayout.of(schema, roles, names, missing_ok)

    @property
    def events(self) -> int:
        """The number of events; a sequence without any counts as one."""
        return self._room[-1]

    def read(self) -> EventSequences:
        """Read all rows."""
        with damage_as_data_error(self.path):
            groups, room = self._parts.row_groups(), self._room
            arrays = _Arrays(self._parts.rows, room[-1])
            rows = self._rows_at_a_time()

            def fill(group: RowGroup, first_event: int, last_event: int) -> tuple[int, dict[str, list[pa.Array]]]:
                return self._fill(arrays, group, rows, first_event, last_event)

            with ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_THREADS)) as threads:
                done = list(threads.map(fill, groups, room[:-1], room[1:]))
            times, marks = arrays.joined(room[:-1], [events for events, _ in done])
            names = ["id", *(n for n in self._layout.names.values() if n != "id" and n not in EVENT_ROLES)]
            columns = {}
            for name in names:
                chunks = [chunk for _, rest in done for chunk in rest.pop(name, [])]
                columns[name] = join_column(chunks) if chunks else self._layout.empty_column(name)
            pa.default_memory_pool().release_unused()  # the checks that follow need the memory that decoding held
            return self._with_unit(self._layout.sequences(arrays.offsets(), times, marks, columns))

    def _fill(
        self, arrays: _Arrays, group: RowGroup, rows: int, first_event: int, last_event: int
    ) -> tuple[int, dict[str, list[pa.Array]]]:
        """Fill in the events of a row group; return their number and the other columns."""
        row, event = group.first_row, first_event
        rest: dict[str, list[pa.Array]] = {}
        for batch in self._parts.group_batches(group, rows):
            part = self._layout.part(batch, row)
            next_row, next_event = row + len(part.lengths), event + len(part.times)
            if next_row > group.first_row + group.rows or next_event > last_event:
                raise DataError("more rows than the footer says", remedy="write the file again")
            arrays.lengths[row:next_row] = part.lengths
            arrays.times[event:next_event], arrays.marks[event:next_event] = part.times, part.marks
            for name, array in part.rest.items():
                rest.setdefault(name, []).append(array)
            row, event = next_row, next_event
        if row != group.first_row + group.rows:
            raise DataError("fewer rows than the footer says", remedy="write the file again")
        return event - first_event, rest

    def scan(self, batch_rows: int) -> Iterator[EventSequences]:
        """Yield the rows in batches of at most `batch_rows`."""
        with damage_as_data_error(self.path):
            row = 0
            for batch in self._parts.batches(batch_rows):
                yield self._with_unit(self._layout.one(self._layout.part(batch, row)))
                row += len(batch)

    def _with_unit(self, sequences: EventSequences) -> EventSequences:
        return sequences.with_meaning(time_unit=self._unit)

    def _rows_at_a_time(self) -> int:
        """Return how many rows have about `_EVENTS_PER_BATCH` events."""
        return max(int(_EVENTS_PER_BATCH / max(self._room[-1] / max(self._parts.rows, 1), 1)), 1)


class _Arrays:
    """The arrays to fill: all events, and the lengths of all sequences."""

    def __init__(self, rows: int, events: int) -> None:
        self.times, self.marks = np.empty(events, np.float64), np.empty(events, np.int32)
        self._offsets = np.zeros(rows + 1, np.int64)
        self.lengths = self._offsets[1:]

    def offsets(self) -> np.ndarray:
        return np.cumsum(self._offsets, out=self._offsets)

    def joined(self, begins: Sequence[int], counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return times and marks of the runs with the given begins and counts, moved together."""
        stop = 0
        for begin, count in zip(begins, counts, strict=True):
            if begin != stop:  # an earlier row group had empty lists
                self.times[stop : stop + count] = self.times[begin : begin + count]
                self.marks[stop : stop + count] = self.marks[begin : begin + count]
            stop += count
        return self.times[:stop], self.marks[:stop]
