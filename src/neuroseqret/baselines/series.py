"""What the three time-series baselines share: an event sequence as the series of its inter-event times.

The event sequence (t_1, x_1), ..., (t_n, x_n) becomes the series t_2 - t_1, ..., t_n - t_{n-1} of n - 1 values. Marks
are not used, as in the paper. A single event has no inter-event time; its series is the one value 0. The series of all
sequences are stored in one flat array with offsets, like the events, so that compiled code can run over them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from neuroseqret.baselines.settings import BaselineSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.models.base import Scores

#: Gaps of one sequence that differ by no more than this many rounding errors of its clock count as equal.
ROUNDINGS = 8


@dataclass(frozen=True)
class Series:
    """Many series of numbers: series i is `values[offsets[i]:offsets[i + 1]]`."""

    values: FloatArray
    offsets: IntArray

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def split(self) -> list[FloatArray]:
        """The series one by one, as views."""
        return [self.values[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def row_of_value(self) -> IntArray:
        return np.repeat(np.arange(len(self)), self.lengths)


def inter_event_times(sequences: EventSequences) -> Series:
    """Return the gaps between successive events of every sequence, without a loop over sequences.

    If all gaps of a sequence are equal up to the rounding of its clock, they are made exactly equal: a metronome
    whose clock counts from 1970 must not look like noise after its series is standardised.
    """
    lengths = sequences.lengths
    number = np.maximum(lengths - 1, 1)
    offsets = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    values = np.zeros(offsets[-1])
    many = np.repeat(lengths > 1, number)  # values that are gaps, not the 0 of a single event
    padded = np.append(sequences.times, 0.0)
    later = np.arange(offsets[-1]) + np.repeat(sequences.offsets[:-1] - offsets[:-1], number) + 1
    values[many] = padded[later[many]] - padded[later[many] - 1]
    series = Series(values, offsets)
    if len(values):
        begin = offsets[:-1]
        clock = np.maximum.reduceat(np.where(many, np.abs(padded[np.minimum(later, len(padded) - 1)]), 0.0), begin)
        spread = np.maximum.reduceat(values, begin) - np.minimum.reduceat(values, begin)
        equal = spread <= ROUNDINGS * np.finfo(np.float64).eps * clock
        values[:] = np.where(np.repeat(equal, number), np.repeat(values[begin], number), values)
    return series


def standardise(series: Series) -> Series:
    """Return every series with mean 0 and standard deviation 1; a constant one becomes all 0."""
    if not len(series.values):
        return series
    begin, row, number = series.offsets[:-1], series.row_of_value(), series.lengths
    # Divide by the largest value first, so that squares of extreme gaps neither overflow nor vanish.
    largest = np.maximum.reduceat(np.abs(series.values), begin)
    scaled = series.values / np.where(largest > 0, largest, 1.0)[row]
    constant = np.maximum.reduceat(scaled, begin) == np.minimum.reduceat(scaled, begin)
    centred = scaled - (np.add.reduceat(scaled, begin) / number)[row]
    deviation = np.sqrt(np.add.reduceat(centred**2, begin) / number)
    deviation[constant] = np.inf
    return Series(centred / deviation[row], series.offsets)


Prepared = TypeVar("Prepared")


class SeriesBaseline(Unlearned, Generic[Prepared]):
    """A distance between series, negated so that higher means more relevant. Nothing is learned from events."""

    def __init__(self, settings: BaselineSettings) -> None:
        super().__init__(settings)
        # The last candidates and what was prepared from them: one corpus is scored against many queries. Sequences
        # are immutable, so the same object always means the same series.
        self._last: tuple[EventSequences, Prepared] | None = None

    @abstractmethod
    def prepare(self, sequences: EventSequences) -> Prepared:
        """Compute everything that depends on one side alone."""

    @abstractmethod
    def compare(self, queries: Prepared, candidates: Prepared) -> npt.NDArray[np.floating]:
        """(queries, candidates), higher is more similar."""

    def compute_scores(self, queries: EventSequences, candidates: EventSequences) -> Scores:
        return self.compare(self.prepare(queries), self.prepared(candidates)).astype(np.float32)

    def prepared(self, candidates: EventSequences) -> Prepared:
        """`prepare`, remembered for the candidates of the last call."""
        if self._last is None or self._last[0] is not candidates:
            self._last = (candidates, self.prepare(candidates))
        return self._last[1]
