"""`EventColumns`: what `EventSequences` holds, column by column, without a copy.

The events of all sequences are in two flat arrays; sequence i owns `times[offsets[i]:offsets[i + 1]]`. The other
columns have one value per sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data import columns as arrow
from neuroseqret.data.columns import CANONICAL, FloatArray, IntArray
from neuroseqret.data.unlocked import unlocked


@unlocked
class EventColumns:
    """The columns of a batch of event sequences, and what they mean."""

    def __init__(
        self,
        table: pa.Table,
        mark_names: Sequence[str] | None = None,
        time_unit: str | None = None,
    ) -> None:
        """Wrap a table whose columns have the types of `CANONICAL`; no validation (see `from_arrow`)."""
        self._table = arrow.one_chunk(table)
        self.mark_names = tuple(mark_names) if mark_names is not None else None
        self.time_unit = time_unit

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def table(self) -> pa.Table:
        """The Arrow table: columns in canonical order, then metadata."""
        return self._table

    def _flat(self, name: str) -> npt.NDArray[Any]:
        """Return the flat values of a list column, without a copy."""
        column = self._table.column(name).chunk(0)
        if column.null_count:  # the values of a null list do not count
            return column.flatten().to_numpy(zero_copy_only=True)
        edges = arrow.numbers(column.offsets)
        return arrow.numbers(column.values)[edges[0] : edges[-1]]

    @cached_property
    def times(self) -> FloatArray:
        """Times of all events, flat: (events,) float64."""
        return self._flat("times")

    @cached_property
    def marks(self) -> npt.NDArray[np.int32]:
        """Marks of all events, flat: (events,) int32."""
        return self._flat("marks")

    @cached_property
    def offsets(self) -> IntArray:
        """Where each sequence begins in `times` and `marks`: (n + 1,) int64, from 0."""
        offsets = arrow.numbers(self._table.column("times").chunk(0).offsets)
        return offsets if offsets[0] == 0 else offsets - offsets[0]

    @cached_property
    def lengths(self) -> IntArray:
        """Number of events of each sequence: (n,)."""
        return self.offsets[1:] - self.offsets[:-1]

    @property
    def ids(self) -> pa.LargeStringArray:
        return self._table.column("id").chunk(0)

    def column(self, name: str) -> pa.Array | None:
        """Return a column by name, or None if there is none."""
        return self._table.column(name).chunk(0) if name in self._table.column_names else None

    @property
    def starts(self) -> FloatArray | None:
        """Start of each observation window, NaN where it is unknown; see `observed`."""
        column = self.column("start")
        return None if column is None else arrow.numbers(column)

    @property
    def ends(self) -> FloatArray | None:
        """End of each observation window, NaN where it is unknown; see `observed`."""
        column = self.column("end")
        return None if column is None else arrow.numbers(column)

    @cached_property
    def _edges(self) -> tuple[FloatArray, FloatArray]:
        times = self.times if len(self.times) else np.array([np.nan])
        filled = self.lengths > 0
        first = np.where(filled, times[np.minimum(self.offsets[:-1], len(times) - 1)], np.nan)
        return first, np.where(filled, times[np.maximum(self.offsets[1:] - 1, 0)], np.nan)

    def first_and_last(self) -> tuple[FloatArray, FloatArray]:
        """Return the times of the first and the last event of each sequence, NaN for an empty one: (n,) each."""
        return self._edges

    @cached_property
    def _observed(self) -> tuple[FloatArray, FloatArray]:
        first, last = self._edges
        starts, ends = self.starts, self.ends
        return (
            first if starts is None else np.where(np.isnan(starts), first, starts),
            last if ends is None else np.where(np.isnan(ends), last, ends),
        )

    def observed(self) -> tuple[FloatArray, FloatArray]:
        """Return start and end of each observation window, from its events where it is unknown: (n,) each."""
        return self._observed

    @property
    def groups(self) -> pa.LargeStringArray | None:
        return self.column("group")

    @property
    def metadata(self) -> pa.Table:
        """The columns that the library does not interpret."""
        return self._table.drop_columns([c for c in CANONICAL if c in self._table.column_names])

    @cached_property
    def num_marks(self) -> int:
        """Number of marks: as many as there are names, else one more than the largest mark."""
        if self.mark_names is not None:
            return len(self.mark_names)
        return int(self.marks.max()) + 1 if len(self.marks) else 0

    @property
    def nbytes(self) -> int:
        return int(self._table.nbytes)
