"""Turn ragged sequences into tensors, padded on the right and grouped by length so that little is padding.

Times become relative to the start of their sequence while they are still float64, so that clocks that count from an
epoch lose nothing. Padded times and marks are 0; `mask` says which positions are events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, B of them, the longest with L events."""

    rows: IntArray  # (B,) row numbers of these sequences in the source
    times: Tensor  # (B, L) float64, since the start of the sequence
    marks: Tensor  # (B, L) int64
    lengths: Tensor  # (B,) int64
    spans: Tensor  # (B,) float64: end minus start of the observation window
    values: Tensor | None = None  # (B, L, V) float32: V further numbers of every event, if there are any

    @property
    def mask(self) -> Tensor:
        """(B, L) bool: True where there is an event."""
        return torch.arange(self.times.shape[1], device=self.times.device) < self.lengths[:, None]

    @property
    def gaps(self) -> Tensor:
        """(B, L) float64: time since the previous event (of the first event: since the start); 0 in the padding."""
        before = torch.nn.functional.pad(self.times, (1, 0))[:, :-1]
        return torch.where(self.mask, self.times - before, 0.0)

    def __len__(self) -> int:
        return len(self.rows)


def pad(sequences: EventSequences, rows: IntArray | None = None, values: Floats | None = None) -> Batch:
    """Return the given rows (all by default) as one padded batch, without a loop over sequences.

    `values` (V, events) are further numbers of all events of `sequences`.

    The start is that of the observation window where it is known, else the time of the first event; likewise the end.
    """
    rows = np.arange(len(sequences)) if rows is None else np.asarray(rows, dtype=np.int64)
    begin = sequences.offsets[rows]
    lengths = sequences.offsets[rows + 1] - begin
    longest = int(lengths.max()) if len(rows) else 0
    position = np.arange(longest)
    inside = position < lengths[:, None]  # (B, L)
    events = np.where(inside, begin[:, None] + position, 0)
    times = sequences.times[events] if longest else np.zeros((len(rows), 0))
    marks = sequences.marks[events] if longest else np.zeros((len(rows), 0), np.int32)
    starts, ends = (bounds[rows] for bounds in sequences.observed())
    return Batch(
        rows=rows,
        times=torch.from_numpy(np.where(inside, times - starts[:, None], 0.0)),
        marks=torch.from_numpy(np.where(inside, marks, 0).astype(np.int64)),
        lengths=torch.from_numpy(lengths),
        spans=torch.from_numpy(np.where(lengths > 0, ends - starts, 0.0)),
        values=None if values is None else _padded(values, events, inside),
    )


def _padded(values: Floats, events: IntArray, inside: npt.NDArray[np.bool_]) -> Tensor:
    """Return numbers (V, all events) of some events (B, L), 0 where there is none: (B, L, V)."""
    if not events.size:
        return torch.zeros(*events.shape, len(values))
    return torch.from_numpy(np.moveaxis(np.where(inside, values[:, events], np.float32(0)), 0, -1).copy())


def rows_by_length(lengths: IntArray, max_events: int, max_rows: int = 4096) -> list[IntArray]:
    """Divide rows into batches of similar length, each with at most `max_events` positions including padding.

    A sequence longer than `max_events` is a batch of its own. Rows of equal length keep their order, so that the same
    data give the same batches.
    """
    order = np.argsort(lengths, kind="stable")
    padded = np.maximum(lengths[order], 1)
    batches, begin = [], 0
    while begin < len(order):
        # Lengths are sorted, so count * longest increases: bisection finds the last row that fits.
        reach = padded[begin : begin + max_rows]
        fits = int(np.searchsorted(reach * np.arange(1, len(reach) + 1), max_events, side="right"))
        batches.append(order[begin : begin + max(fits, 1)])
        begin += max(fits, 1)
    return batches


def batches(sequences: EventSequences, max_events: int = 16384) -> Iterator[Batch]:
    """Yield all sequences as padded batches of similar length; `batch.rows` says where results belong."""
    for rows in rows_by_length(sequences.lengths, max_events):
        yield pad(sequences, rows)


def join(first: Batch, second: Batch) -> Batch:
    """Join two batches, padded to the longer one."""
    width = max(first.times.shape[1], second.times.shape[1])

    def both(a: Tensor, b: Tensor) -> Tensor:
        after = (0, 0) * (a.dim() - 2)
        return torch.cat([torch.nn.functional.pad(x, (*after, 0, width - x.shape[1])) for x in (a, b)])

    return Batch(
        np.concatenate([first.rows, second.rows]),
        both(first.times, second.times),
        both(first.marks, second.marks),
        torch.cat([first.lengths, second.lengths]),
        torch.cat([first.spans, second.spans]),
        None if first.values is None or second.values is None else both(first.values, second.values),
    )
