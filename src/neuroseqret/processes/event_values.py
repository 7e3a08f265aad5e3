r"""Numeric values of events, such as amounts or speeds, on one scale.

A value is mapped to its normal score, :math:`\Phi^{-1}` of its rank in the corpus, by linear interpolation between
quantiles. So the scale does not depend on the unit, and a few huge values do no harm. A missing value is 0, the median.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.columns import CANONICAL, event_values
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import UserError

if TYPE_CHECKING:  # a search computes features without importing torch
    from neuroseqret.data.batching import Batch

_QUANTILES = 65
_SCORES = np.array([NormalDist().inv_cdf((i + 0.5) / _QUANTILES) for i in range(_QUANTILES)])


class EventValues:
    """The named columns of events that a model learns from, with the quantiles of each in the corpus."""

    def __init__(self, names: Sequence[str] = (), quantiles: FloatArray | None = None) -> None:
        self.names = tuple(names)
        self.quantiles = np.empty((0, _QUANTILES)) if quantiles is None else quantiles

    @classmethod
    def fit(cls, corpus: EventSequences, names: Sequence[str]) -> EventValues:
        """Compute the quantiles of every named column of the corpus."""
        levels = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
        quantiles = np.zeros((len(names), _QUANTILES))
        for row, name in enumerate(names):
            values = numbers_of(corpus, name)
            known = values[np.isfinite(values)]
            if not len(known):
                raise UserError(f"column {name!r} has no numbers to learn from; leave it out of 'values'")
            quantiles[row] = np.quantile(known, levels)
        return cls(names, quantiles)

    def of(self, sequences: EventSequences) -> npt.NDArray[np.float32]:
        """Return the normal scores of all events, 0 where a value is missing: (columns, events)."""
        known = self.known(sequences)
        return np.nan_to_num(known, nan=0.0) if self.names else known

    def known(self, sequences: EventSequences) -> npt.NDArray[np.float32]:
        """Return the same with NaN where a value is missing."""
        scores = np.empty((len(self.names), len(sequences.times)), np.float32)
        for row, name in enumerate(self.names):
            scores[row] = self._score(numbers_of(sequences, name), self.quantiles[row])
        return scores

    def padded(self, sequences: EventSequences, rows: IntArray | None = None) -> Batch:
        """Return some sequences (all by default) as a padded batch with their normal scores."""
        from neuroseqret.data.batching import pad  # here, as it imports torch

        if not self.names:
            return pad(sequences, rows)
        some = sequences if rows is None else sequences[rows]
        return pad(some, values=self.of(some))

    @staticmethod
    def _score(values: FloatArray, quantiles: FloatArray) -> FloatArray:
        # Equal quantiles (a value that occurs often) get the mean of their scores.
        levels, index = np.unique(quantiles, return_inverse=True)
        scores = np.bincount(index, _SCORES) / np.bincount(index)
        found: FloatArray = np.interp(values, levels, scores)
        return np.where(np.isfinite(values), found, np.nan)


def numbers_of(sequences: EventSequences, name: str) -> FloatArray:
    """Return a column of events as float64 (NaN: missing); raise a `UserError` if there is no such column.

    Readers make one number per sequence of a column that is constant within every sequence; it counts for all events.
    """
    column = sequences.column(name)
    if column is None:
        raise UserError(f"there is no column {name!r}, which the model learns from; add it, with one number per event")
    plain = are_numbers(column.type)
    values = (
        column.take(pa.array(np.repeat(np.arange(len(sequences)), sequences.lengths)))
        if plain
        else event_values(column, sequences.lengths)
    )
    if values is None or not are_numbers(values.type):
        raise UserError(f"column {name!r} does not have one number per event; give numbers or leave it out")
    numbers: FloatArray = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def has_numbers(sequences: EventSequences, name: str) -> bool:
    """Return whether `numbers_of` can read a column."""
    column = sequences.column(name)
    if column is None:
        return False
    values = column if are_numbers(column.type) else event_values(column, sequences.lengths)
    return values is not None and are_numbers(values.type)


def are_numbers(kind: pa.DataType) -> bool:
    """Return whether this is a type of numbers."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def bare(sequences: EventSequences, values: Sequence[str] = ()) -> EventSequences:
    """Return the sequences with id, events, window and the given values of events only, so that they can be joined."""
    kept = {name: numbers_of(sequences, name) for name in values if sequences.column(name) is not None}
    found = sequences.without_columns(
        "group", *(name for name in sequences.table.column_names if name not in CANONICAL)
    )
    for name, numbers in kept.items():
        cuts, plain = pa.array(sequences.offsets), pa.array(numbers, from_pandas=True)  # NaN becomes null
        found = found.with_column(name, pa.LargeListArray.from_arrays(cuts, plain))
    return found
