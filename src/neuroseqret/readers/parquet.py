"""Parquet with one row a sequence and its events in list columns: the engine behind three formats.

The flat arrays are made once, at the size that the file's footer gives, and filled batch by batch, so that a
file is read in little more than the memory of its arrays; `scan` reads files larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import seal
from neuroseqret.readers.files import new_file
from neuroseqret.readers.values import as_column, as_marks, as_times, is_text, sorted_names, unit_of
from neuroseqret.sequences import CANONICAL, EventSequences

BATCH_ROWS = 8192
_EVENTS_PER_ROW_GROUP = 1 << 22


@contextmanager
def damage_as_data_error(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever a Parquet library raises over a damaged file, as one `DataError`."""
    try:
        yield
    except UserError as error:
        if isinstance(error, DataError) and error.file is None:
            error.file = path
        raise
    except FileNotFoundError as error:
        raise DataError("no such file", file=path, remedy="check the path") from error
    except (pa.ArrowException, OSError, MemoryError, UnicodeError, OverflowError, ValueError) as error:
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(f"not readable as Parquet ({line})", file=path, remedy="write the file again") from error


def open_parquet(path: str | PathLike[str], whole: bool = True) -> pq.ParquetFile:
    """The file, with its seal checked (`whole`) and pages' checksums on; call inside `damage_as_data_error`."""
    if whole and seal.is_broken(Path(path)):
        raise DataError("damaged: the checksum does not fit", file=path, remedy="write or copy the file again")
    # Neither pre-buffering nor whole column chunks: both hold the compressed file beside its arrays.
    return pq.ParquetFile(
        path, pre_buffer=False, buffer_size=1 << 20, page_checksum_verification=True, memory_map=False
    )


@dataclass(frozen=True)
class _Part:
    """Some rows, their events flat."""

    lengths: np.ndarray
    times: np.ndarray
    marks: np.ndarray
    rest: dict[str, pa.Array]  # all other columns, by their canonical names


class ListColumns:
    """A Parquet file whose events are in list columns; `roles` says which column is which.

    `roles` maps `id`, `times`, `marks` and where wanted `start`, `end`, `group` to the file's column names;
    without `marks` every mark is 0. All other columns are kept as metadata.
    """

    def __init__(
        self, path: str | PathLike[str], roles: Mapping[str, str], mark_names: Sequence[str] | None = None
    ) -> None:
        self.path, self.roles = path, dict(roles)
        with damage_as_data_error(path):
            self.file = open_parquet(path)
            schema = self.file.schema_arrow
            self._check_roles(schema)
            self.time_unit = unit_of(schema.field(self.roles["times"]).type.value_type)
            self.mark_names = tuple(mark_names) if mark_names is not None else None
            marks = self.roles.get("marks")
            if self.mark_names is None and marks and is_text(schema.field(marks).type.value_type):
                batches = self.file.iter_batches(BATCH_ROWS, columns=[marks])
                self.mark_names = sorted_names(batch.column(0).flatten() for batch in batches)
            own = {source: role for role, source in self.roles.items()}
            names = [own.get(name, name) for name in schema.names]
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise DataError(f"two columns are called {twice!r}", file=path, remedy="rename one of them")
            self._name = dict(zip(schema.names, names, strict=True))

    def _check_roles(self, schema: pa.Schema) -> None:
        for role, name in self.roles.items():
            if name not in schema.names:
                found = ", ".join(schema.names)
                raise DataError(f"no column {name!r} for {role}", file=self.path, remedy=f"columns found: {found}")
            kind = schema.field(name).type
            listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
            if listed != (role in ("times", "marks")):
                wanted = "one value" if listed else "a list"
                raise DataError(f"column {name!r} is {kind}, {role} need {wanted} a row", file=self.path)

    def read(self) -> EventSequences:
        """All rows."""
        with damage_as_data_error(self.path):
            rows = self.file.metadata.num_rows
            room = self._most_events()
            times, marks = np.empty(room, np.float64), np.empty(room, np.int32)
            offsets = np.zeros(rows + 1, np.int64)
            rest: dict[str, list[pa.Array]] = {name: [] for name in self._name.values()}
            row = event = 0
            for part in self._parts(BATCH_ROWS):
                stop, last = row + len(part.lengths), event + len(part.times)
                if stop > rows or last > room:
                    raise DataError("more rows than the footer says", file=self.path, remedy="write the file again")
                times[event:last], marks[event:last] = part.times, part.marks
                np.cumsum(part.lengths, out=offsets[row + 1 : stop + 1])
                offsets[row + 1 : stop + 1] += event
                for name, array in part.rest.items():
                    rest[name].append(array)
                row, event = stop, last
            if row != rows:
                raise DataError(f"{row} rows, the footer says {rows}", file=self.path, remedy="write the file again")
            columns = {
                name: self._join(name, arrays) for name, arrays in rest.items() if name not in ("times", "marks")
            }
            return self._sequences(columns, offsets, times[:event], marks[:event])

    def scan(self, batch_rows: int) -> Iterator[EventSequences]:
        """The rows in batches."""
        with damage_as_data_error(self.path):
            for part in self._parts(batch_rows):
                offsets = np.concatenate([[0], np.cumsum(part.lengths)])
                yield self._sequences(part.rest, offsets, part.times, part.marks)

    def _sequences(
        self, columns: Mapping[str, pa.Array], offsets: np.ndarray, times: np.ndarray, marks: np.ndarray
    ) -> EventSequences:
        cuts = pa.array(offsets)
        made = {
            **columns,
            "times": pa.LargeListArray.from_arrays(cuts, pa.array(times)),
            "marks": pa.LargeListArray.from_arrays(cuts, pa.array(marks)),
        }
        order = [c for c in CANONICAL if c in made] + [c for c in made if c not in CANONICAL]
        return EventSequences(pa.table({c: made[c] for c in order}), self.mark_names, self.time_unit)

    def _most_events(self) -> int:
        """How many events there are at most: the footer counts a value for each event and for each empty list."""
        footer, leaf = self.file.metadata, None
        for column in range(footer.num_columns):
            path = footer.schema.column(column).path
            if path.split(".")[0] == self.roles["times"]:
                leaf = column
        assert leaf is not None, "a list column has a leaf"
        return sum(footer.row_group(group).column(leaf).num_values for group in range(footer.num_row_groups))

    def _parts(self, batch_rows: int) -> Iterator[_Part]:
        row = 0
        for batch in self.file.iter_batches(batch_rows):
            yield self._part(batch, row)
            row += len(batch)

    def _part(self, batch: pa.RecordBatch, row: int) -> _Part:
        rest = {}
        for source, name in self._name.items():
            if name not in ("times", "marks"):
                column = as_column(name, batch.column(source))
                column.validate(full=True)  # text that is not UTF-8 would fail much later and far from here
                rest[name] = column
        lengths, times = self._events(batch, "times", rest, row)
        if "marks" not in self.roles:
            return _Part(lengths, times, np.zeros(len(times), np.int32), rest)
        mark_lengths, marks = self._events(batch, "marks", rest, row)
        differ = np.flatnonzero(lengths != mark_lengths)
        if len(differ):
            raise DataError(
                f"{lengths[differ[0]]} times but {mark_lengths[differ[0]]} marks",
                sequence=_id_of(rest, differ[0], row),
                remedy="give one mark per time",
            )
        return _Part(lengths, times, marks, rest)

    def _events(
        self, batch: pa.RecordBatch, role: str, rest: Mapping[str, pa.Array], row: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lengths and flat values of a list column."""
        column = batch.column(self.roles[role])
        if column.null_count:
            at = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            raise DataError(f"no {role}", sequence=_id_of(rest, at, row), remedy="drop the row")
        lengths = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
        values = column.flatten()

        def locate(event: int) -> tuple[object, int]:
            ends = np.cumsum(lengths)
            at = int(np.searchsorted(ends, event, side="right"))
            return _id_of(rest, at, row), event - int(ends[at] - lengths[at])

        if role == "times":
            return lengths, as_times(values, f"time ({self.roles[role]})", locate)
        return lengths, as_marks(values, f"mark ({self.roles[role]})", self.mark_names, locate)

    def _join(self, name: str, arrays: list[pa.Array]) -> pa.Array:
        if not arrays:
            source = next(source for source, own in self._name.items() if own == name)
            return as_column(name, pa.array([], self.file.schema_arrow.field(source).type))
        if len(arrays) == 1:
            return arrays[0]
        if pa.types.is_dictionary(arrays[0].type):
            return pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
        return pa.concat_arrays(arrays)


def _id_of(rest: Mapping[str, pa.Array], at: int, row: int) -> str:
    id_ = rest["id"][int(at)].as_py() if "id" in rest else None
    return id_ if id_ is not None else f"in row {row + int(at)}"


def write_parquet(table: pa.Table, path: str | PathLike[str], events: int, metadata: Mapping[str, str]) -> None:
    """Write a table, sealed and in one step, in row groups of some million events each."""
    per_row = max(events / max(table.num_rows, 1), 1)
    options: dict[str, Any] = {
        "compression": "zstd",
        "row_group_size": int(min(max(_EVENTS_PER_ROW_GROUP / per_row, 1), 1 << 20)),
        "write_page_checksum": True,
    }
    with new_file(path) as temporary:
        pq.write_table(table.replace_schema_metadata(dict(metadata)), temporary, **options)
        seal.seal(temporary)
