"""Ragged sequences to padded tensors: right-padded, grouped by length so that little is padding.

Times are made relative to each sequence's start in float64 before anything is rounded, so that clocks that
count from an epoch lose nothing. Padding repeats no mark: padded marks are 0 and padded times are 0, and
`mask` tells which positions are events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from neuroseqret.data.sequences import EventSequences, IntArray


@dataclass(frozen=True)
class Batch:
    """Sequences side by side, B of them, the longest with L events."""

    rows: IntArray  # (B,) which sequences of the source these are
    times: Tensor  # (B, L) float64, since the sequence's start
    marks: Tensor  # (B, L) int64
    lengths: Tensor  # (B,) int64
    spans: Tensor  # (B,) float64: end minus start of the observation window

    @property
    def mask(self) -> Tensor:
        """(B, L) bool: True where there is an event."""
        return torch.arange(self.times.shape[1], device=self.times.device) < self.lengths[:, None]

    @property
    def gaps(self) -> Tensor:
        """(B, L) float64: time since the previous event, for the first event since the start; 0 in the padding."""
        before = torch.nn.functional.pad(self.times, (1, 0))[:, :-1]
        return torch.where(self.mask, self.times - before, 0.0)

    def __len__(self) -> int:
        return len(self.rows)


def pad(sequences: EventSequences, rows: IntArray | None = None) -> Batch:
    """The given rows (all by default) as one padded batch, by one gather and no loop over sequences.

    The start is the observation window's where it is known, else the first event's time; likewise the end.
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
    )


def rows_by_length(lengths: IntArray, max_events: int, max_rows: int = 4096) -> list[IntArray]:
    """Rows cut into batches of like length, each with at most `max_events` positions, padding included.

    A sequence longer than `max_events` is a batch of its own. Equal lengths keep their order, so that the same
    data give the same batches.
    """
    order = np.argsort(lengths, kind="stable")
    padded = np.maximum(lengths[order], 1)
    batches, begin = [], 0
    while begin < len(order):
        # Sorted lengths rise, so count * longest rises too: the last fitting row is found by bisection.
        reach = padded[begin : begin + max_rows]
        fits = int(np.searchsorted(reach * np.arange(1, len(reach) + 1), max_events, side="right"))
        batches.append(order[begin : begin + max(fits, 1)])
        begin += max(fits, 1)
    return batches


def batches(sequences: EventSequences, max_events: int = 16384) -> Iterator[Batch]:
    """All sequences as padded batches of like length; put results back in place by `batch.rows`."""
    for rows in rows_by_length(sequences.lengths, max_events):
        yield pad(sequences, rows)


def join(first: Batch, second: Batch) -> Batch:
    """Two batches as one, padded to the longer."""
    width = max(first.times.shape[1], second.times.shape[1])

    def both(a: Tensor, b: Tensor) -> Tensor:
        return torch.cat([torch.nn.functional.pad(x, (0, width - x.shape[1])) for x in (a, b)])

    return Batch(
        np.concatenate([first.rows, second.rows]),
        both(first.times, second.times),
        both(first.marks, second.marks),
        torch.cat([first.lengths, second.lengths]),
        torch.cat([first.spans, second.spans]),
    )
