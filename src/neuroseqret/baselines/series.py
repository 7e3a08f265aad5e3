"""What the three time-series baselines share: an event sequence as the series of its inter-event times.

Event sequence (t_1, x_1), ..., (t_n, x_n) becomes the series t_2 - t_1, ..., t_n - t_{n-1} of n - 1 values; marks
are not looked at, as in the paper. A single event has no inter-event time; its series is the one value 0.
Series of all sequences lie in one flat array with offsets, as the events do, for compiled code to run over.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from neuroseqret.baselines.folders import fitting_together, meaning
from neuroseqret.data.relevance import Relevance
from neuroseqret.data.sequences import EventSequence, EventSequences, FloatArray, IntArray
from neuroseqret.models.base import RelevanceModel, Scores
from neuroseqret.models.model_folder import read_model, write_model

#: Gaps of one sequence that differ by no more than so many roundings of its clock count as equal.
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
    """The gaps between successive events of every sequence, without a loop over sequences.

    Where all gaps of a sequence are equal up to the rounding of its clock they are made exactly equal: a metronome
    whose clock counts from 1970 must not look like noise once its series is standardised.
    """
    lengths = sequences.lengths
    number = np.maximum(lengths - 1, 1)
    offsets = np.concatenate([[0], np.cumsum(number)]).astype(np.int64)
    values = np.zeros(offsets[-1])
    many = np.repeat(lengths > 1, number)  # values that are a gap, not the 0 of a single event
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
    """Every series with mean 0 and standard deviation 1; a constant one becomes all 0."""
    if not len(series.values):
        return series
    begin, row, number = series.offsets[:-1], series.row_of_value(), series.lengths
    # Scaled by the largest value first, so that squares of extreme gaps neither overflow nor vanish.
    largest = np.maximum.reduceat(np.abs(series.values), begin)
    scaled = series.values / np.where(largest > 0, largest, 1.0)[row]
    constant = np.maximum.reduceat(scaled, begin) == np.minimum.reduceat(scaled, begin)
    centred = scaled - (np.add.reduceat(scaled, begin) / number)[row]
    deviation = np.sqrt(np.add.reduceat(centred**2, begin) / number)
    deviation[constant] = np.inf
    return Series(centred / deviation[row], series.offsets)


Prepared = TypeVar("Prepared")


class SeriesBaseline(RelevanceModel, Generic[Prepared]):
    """A distance between series, turned round so that higher is more relevant. Nothing is learned from events."""

    name: ClassVar[str]

    def __init__(self) -> None:
        # The last candidates and what was made of them: one corpus is scored against many queries. Sequences are
        # immutable, so the same object always means the same series.
        self._last: tuple[EventSequences, Prepared] | None = None
        self.info: dict[str, Any] = {}  # on what it was fitted

    @abstractmethod
    def prepare(self, sequences: EventSequences) -> Prepared:
        """All that depends on one side alone."""

    @abstractmethod
    def compare(self, queries: Prepared, candidates: Prepared) -> npt.NDArray[np.floating]:
        """(queries, candidates), higher is more alike."""

    def fit(
        self,
        queries: EventSequences,
        corpus: EventSequences,
        relevance: Relevance | None = None,
        *,
        seed: int = 0,
        max_seconds: float | None = None,
        **options: Any,
    ) -> Self:
        """Nothing to learn: the parameters are those of the original."""
        self.info = {"seed": seed, **meaning(corpus)}
        return self

    def score(
        self, queries: EventSequence | EventSequences | Iterable[EventSequence], candidates: EventSequences
    ) -> Scores:
        scores = self.compare(self.prepare(EventSequences.of(queries)), self.prepared(candidates)).astype(np.float32)
        return scores[0] if isinstance(queries, EventSequence) else scores

    def prepared(self, candidates: EventSequences) -> Prepared:
        """`prepare`, remembered for the candidates of the last call."""
        if self._last is None or self._last[0] is not candidates:
            self._last = (candidates, self.prepare(candidates))
        return self._last[1]

    def settings(self) -> dict[str, Any]:
        """The arguments that make this method again."""
        return {}

    def save(self, folder: str | PathLike[str]) -> Path:
        return write_model(folder, self.name, {"settings": self.settings(), "info": self.info}, {})

    @classmethod
    def load(cls, folder: str | PathLike[str]) -> Self:
        config, _ = read_model(folder, cls.name)
        with fitting_together(folder):
            made = cls(**config["settings"])
            made.info = config["info"]
        return made
