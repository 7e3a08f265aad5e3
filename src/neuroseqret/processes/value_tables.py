r"""Tables of the values of events, beside those of marks and gaps in `markov_renewal`; only for declared values.

A value v of event i, as a normal score (see `event_values`), has the class :math:`c_i` among classes of equal frequency
over the corpus, fine or coarse. With the coarse class :math:`k_i` of its gap and its mark :math:`x_i`, the tables count

.. math:: c_i, \qquad (c_{i-1}, c_i), \qquad (x_i, c_i), \qquad (k_i, c_i),

and as in `markov_renewal` the features are the square roots of the shares of their cells, centred and whitened over the
corpus. Mean, standard deviation, mean size of changes and the lagged correlation of the scores complete them. An event
whose value is missing is in no cell; in the moments it counts as the median.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes import markov_loops as loops
from neuroseqret.processes.event_classes import log_gaps, quantiles
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.features import BOTH, FAR, TIMES, WHOLE, Features, clipped_shares
from neuroseqret.processes.shared_classes import shared_classes
from neuroseqret.processes.time_scale import TimeScale

if TYPE_CHECKING:  # a search computes features without importing torch
    from torch import Tensor

FINE, COARSE = 16, 6  # classes of values; gaps have `COARSE`
MOST_MARKS = 64  # classes of marks
MOMENTS = 4
_KINDS = (TIMES, TIMES, BOTH, TIMES)  # of the tables of one value
_TOTALS = (loops.EVENTS, loops.STEPS, loops.EVENTS, loops.GAPS)
_SUMMED = 8192  # sequences whose statistics are held at once while fitting


class ValueTables:
    """The classes of values, gaps and marks, and the mean and scale of every feature, fitted on a corpus."""

    def __init__(
        self,
        scale: TimeScale,
        marks: int,
        values: EventValues,
        saved: Mapping[str, npt.NDArray[Any] | Tensor],
        fitting: bool = False,
    ) -> None:
        self.scale, self.marks, self.values = scale, marks, values
        self._arrays: dict[str, npt.NDArray[Any]] = {k: np.asarray(v) for k, v in saved.items()}
        self._classes = min(marks, MOST_MARKS)
        if not fitting:
            self._check()

    def _check(self) -> None:
        """Raise a `ValueError` if the arrays, which may come from a file, do not fit together."""
        of_values = (f"{kind}.{v}" for kind in ("fine", "coarse") for v in range(len(self.values.names)))
        if missing := {"gaps", "mean", "weight", *of_values} - self._arrays.keys():
            raise ValueError(f"{min(missing)} is missing")
        if flawed := [name for name, array in self._arrays.items() if array.ndim != 1]:
            raise ValueError(f"{flawed[0]} has the shape {self._arrays[flawed[0]].shape}")
        if any(self._arrays[name].shape != (self.size,) for name in ("mean", "weight")):
            raise ValueError(f"the tables of values have {self.size} cells, their means {self._arrays['mean'].shape}")
        classes = self._arrays.get("marks", np.zeros(self.marks, np.int32))  # the compiled loops do not check bounds
        if classes.shape != (self.marks,) or not ((classes >= 0) & (classes < MOST_MARKS)).all():
            raise ValueError(f"these are not the classes of {self.marks} marks")

    @classmethod
    def fit(cls, corpus: EventSequences, scale: TimeScale, marks: int, values: EventValues) -> ValueTables:
        """Fit the classes, and the mean and scale of every feature, on a corpus."""
        gaps = log_gaps(corpus, scale)
        arrays: dict[str, npt.NDArray[Any]] = {"gaps": quantiles(gaps[np.isfinite(gaps)], COARSE)}
        for v, scores in enumerate(values.known(corpus)):
            there = scores[np.isfinite(scores)]
            arrays |= {f"fine.{v}": quantiles(there, FINE), f"coarse.{v}": quantiles(there, COARSE)}
        if (classes := shared_classes(corpus.marks, marks, MOST_MARKS)) is not None:
            arrays["marks"] = classes
        model = cls(scale, marks, values, arrays, fitting=True)
        total, squares = np.zeros(model.size), np.zeros(model.size)
        for begin in range(0, len(corpus), _SUMMED):
            block = model.statistics(corpus[begin : begin + _SUMMED]).astype(np.float64)
            total, squares = total + block.sum(0), squares + np.square(block).sum(0)
        mean = total / max(len(corpus), 1)
        sd = np.sqrt(np.maximum(squares / max(len(corpus), 1) - mean**2, 0.0))
        arrays["mean"] = mean.astype(np.float32)
        arrays["weight"] = np.where(sd > 1e-5, 1 / np.maximum(sd, 1e-5), 0.0).astype(np.float32)
        return cls(scale, marks, values, arrays)

    @property
    def size(self) -> int:
        """The number of features: the tables of every value, then the moments of every value."""
        return sum(self._sizes()) + MOMENTS * len(self.values.names)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What was fitted, to be saved."""
        import torch

        return {name: torch.from_numpy(array) for name, array in self._arrays.items()}

    def features(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the statistics centred, whitened and clipped: (sequences, size); `gaps` are their `log_gaps`."""
        found = (self.statistics(sequences, gaps) - self._arrays["mean"]) * self._arrays["weight"]
        return np.clip(found, -FAR, FAR, out=found)

    def statistics(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the square roots of the shares of every table, and the moments, before centring: (sequences, size)."""
        gaps = log_gaps(sequences, self.scale) if gaps is None else gaps
        begin, rows = np.cumsum([0, *self._sizes()]), np.repeat(np.arange(len(sequences)), sequences.lengths)
        found = np.zeros((len(sequences), self.size), np.float32)
        gapped = np.bincount(rows, np.isfinite(gaps), minlength=len(sequences)).astype(np.int64)
        totals = np.tile(_TOTALS, len(self.values.names))
        loops.roots_of_shares(sequences.offsets, self._cells(sequences, gaps), begin, totals, gapped, found)
        for v, scores in enumerate(self.values.of(sequences).astype(np.float64)):
            at = begin[-1] + MOMENTS * v
            found[:, at : at + MOMENTS] = _moments(sequences, rows, scores)
        return found

    def event_shares(self, sequence: EventSequences) -> tuple[FloatArray, FloatArray, IntArray]:
        """Split the features of one sequence over its events, as `MarkovRenewal.event_shares` does."""
        begin, shares = np.cumsum([0, *self._sizes()]), np.zeros((len(sequence.times), self.size))
        for first, cells in zip(begin, self._cells(sequence, log_gaps(sequence, self.scale)), strict=False):
            counted = np.flatnonzero(cells >= 0)
            shares[counted, first + cells[counted]] = 1.0
        shares /= np.maximum(shares.sum(0), 1)
        weight = self._arrays["weight"].astype(np.float64)
        shares *= self.statistics(sequence)[0] * weight
        kinds = np.repeat([*np.tile(_KINDS, len(self.values.names)), WHOLE], [*self._sizes(), self.size - begin[-1]])
        features = self.features(sequence)[0].astype(np.float64)
        return *clipped_shares(shares, features, self._arrays["mean"] * weight), kinds

    # ---------------------------------------------------------------- inside

    def _sizes(self) -> list[int]:
        """Return the number of cells of every table: four for each value."""
        gaps, sizes = len(self._arrays["gaps"]) + 1, []
        for v in range(len(self.values.names)):
            coarse = len(self._arrays[f"coarse.{v}"]) + 1
            sizes += [len(self._arrays[f"fine.{v}"]) + 1, coarse**2, self._classes * coarse, gaps * coarse]
        return sizes

    def _cells(self, sequences: EventSequences, gaps: FloatArray) -> IntArray:
        """Return the cell of every event in every table, -1 if it is in none: (tables, events)."""
        marks, starts = sequences.marks, sequences.offsets[:-1][sequences.lengths > 0]
        classes = self._arrays["marks"][np.minimum(marks, self.marks - 1)] if "marks" in self._arrays else marks
        of_gaps, tables = np.searchsorted(self._arrays["gaps"], gaps), []
        for v, scores in enumerate(self.values.known(sequences)):
            there, number = np.isfinite(scores), len(self._arrays[f"coarse.{v}"]) + 1
            fine, coarse = (np.searchsorted(self._arrays[f"{name}.{v}"], scores) for name in ("fine", "coarse"))
            before, follows = np.roll(coarse, 1), there & np.roll(there, 1)
            follows[starts] = False
            tables += [
                np.where(there, fine, -1),
                np.where(follows, before * number + coarse, -1),
                np.where(there & (marks < self.marks), classes * number + coarse, -1),
                np.where(there & np.isfinite(gaps), of_gaps * number + coarse, -1),
            ]
        return np.stack(tables).astype(np.int64)


def _moments(sequences: EventSequences, rows: IntArray, scores: FloatArray) -> FloatArray:
    """Return mean, sd, mean size of changes and lagged correlation of the scores of every sequence: (sequences, 4)."""
    number = np.maximum(sequences.lengths, 1)
    steps, inside = np.maximum(number - 1, 1), rows[1:] == rows[:-1]  # both events are of one sequence

    def total(values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(rows, values, minlength=len(number)).astype(np.float64)
        return found

    def total_of_steps(values: FloatArray) -> FloatArray:
        found: FloatArray = np.bincount(rows[1:], values * inside, minlength=len(number)).astype(np.float64)
        return found

    mean = total(scores) / number
    own = scores - mean[rows]
    variance = total(own**2) / number
    changes = total_of_steps(np.abs(np.diff(scores))) / steps
    lagged = total_of_steps(own[1:] * own[:-1]) / steps / np.maximum(variance, 1e-3)
    return np.stack([mean, np.sqrt(variance), changes, lagged], axis=1)
