r"""Local states: what happens around each event, as a unit vector, for events of two sequences to be compared.

A local state is a linear map of the outputs that the kernels of the convolution bank without dilation have around the
event,

.. math:: x_i = \mathrm{norm}\bigl(W (y_i - \bar y)\bigr), \qquad
          y_{k,i} = \sum_{t \in k} w_t\, x_{c_t,\, i + o_t - \lfloor s_k / 2 \rfloor},

where :math:`s_k` is the largest offset of kernel k, and channels are 0 beyond both ends of the sequence. A linear map
of convolutions is a convolution, so W is multiplied into the kernels once: every offset has a weight per gap, own gap
and value, and a row per mark. So a state costs as much as one output per coordinate, not one per kernel.

Long sequences keep `MOST_EVENTS` states, evenly spread; the neighbours of an event are those of the whole sequence.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.processes import bank_loops as loops
from neuroseqret.processes.convolution_bank import ConvolutionBank
from neuroseqret.processes.event_classes import log_gaps
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.time_scale import TimeScale

Floats = npt.NDArray[np.float32]

REACH = 3  # events before and after the event that its state sees
MOST_EVENTS = 128  # states of one sequence
COMPONENTS = 32  # coordinates of a fitted state
_KERNELS = 128  # of the bank, at most
_SAMPLED = 1024  # corpus sequences that the components are taken from


class LocalStates:
    """The map above, folded: `levels` (offsets, 2 + values, D), `of_marks` (offsets, classes + 1, D), `shift` (D,)."""

    def __init__(
        self, scale: TimeScale, marks: int, values: EventValues, levels: Floats, of_marks: Floats, shift: Floats
    ) -> None:
        self.scale, self.marks, self.values = scale, marks, values
        self.levels, self.of_marks, self.shift = levels, of_marks, shift

    def check(self) -> None:
        """Raise a `ValueError` if the arrays, which may come from a file, do not fit; the loops check no bounds."""
        levels = (2 * REACH + 1, loops.FIRST_VALUE + len(self.values.names), *self.shift.shape)
        of_marks = (2 * REACH + 1, *self.of_marks.shape[1:2], *self.shift.shape)
        fits = self.levels.shape == levels and self.of_marks.shape == of_marks and of_marks[1] > 1
        if not fits or self.shift.ndim != 1 or any(array.dtype != np.float32 for array in self.arrays().values()):
            raise ValueError(f"local states have the shapes {self.levels.shape} and {self.of_marks.shape}")

    @classmethod
    def of_bank(cls, bank: ConvolutionBank) -> LocalStates:
        """Return the outputs of the local kernels themselves, that is W = 1, before any mean is taken off."""
        a = {name: tensor.numpy() for name, tensor in bank.tensors.items()}
        local = [k for k in range(len(a["span"])) if a["span"][k] <= 2 * REACH + 1 and _undilated(a, k)][:_KERNELS]
        numeric = loops.FIRST_VALUE + len(bank.values.names)
        weights = np.zeros((2 * REACH + 1, numeric + len(a["codes"]), len(local)), np.float32)
        for column, k in enumerate(local):
            for t in range(a["begin"][k], a["begin"][k + 1]):
                offset = a["offset"][t] - (a["span"][k] - 1) // 2
                weights[offset + REACH, a["channel"][t], column] += a["tap"][t]
        of_marks = np.einsum("ock,cm->omk", weights[:, numeric:], a["codes"])
        shift = np.zeros(len(local), np.float32)
        return cls(bank.scale, bank.marks, bank.values, weights[:, :numeric], of_marks.astype(np.float32), shift)

    def mapped(self, matrix: Floats, shift: Floats) -> LocalStates:
        """Return the states x W + b for these states x: `matrix` is (D, new D), `shift` (new D,)."""
        return LocalStates(
            self.scale,
            self.marks,
            self.values,
            np.ascontiguousarray(self.levels @ matrix),
            np.ascontiguousarray(self.of_marks @ matrix),
            (self.shift @ matrix + shift).astype(np.float32),
        )

    def arrays(self) -> dict[str, Floats]:
        """Return what to save, by the names of the arguments."""
        return {"levels": self.levels, "of_marks": self.of_marks, "shift": self.shift}

    @property
    def size(self) -> int:
        """The number of coordinates of a state."""
        return len(self.shift)

    def raw(self, sequences: EventSequences, most: int = MOST_EVENTS) -> tuple[Floats, IntArray, IntArray]:
        """Return the states before they are normalised, (kept events, D), their offsets and which events are kept."""
        kept, offsets = spread(sequences.offsets, most)
        gaps = log_gaps(sequences, self.scale).astype(np.float32)
        found = np.empty((len(kept), self.size), np.float32)
        events = sequences.offsets, gaps, self.values.of(sequences), sequences.marks, self.marks
        _fill_states(*events, kept, offsets, self.levels, self.of_marks, self.shift, found)
        return found, offsets, kept

    def of(self, sequences: EventSequences, most: int = MOST_EVENTS) -> tuple[Floats, IntArray]:
        """Return the states as unit rows (kept events, D), and the offsets of the sequences in them."""
        return self.kept(sequences, most)[:2]

    def kept(self, sequences: EventSequences, most: int = MOST_EVENTS) -> tuple[Floats, IntArray, IntArray]:
        """Return the same, and which events are kept."""
        found, offsets, events = self.raw(sequences, most)
        found /= np.maximum(np.sqrt(np.einsum("ed,ed->e", found, found)), np.float32(1e-6))[:, None]
        return found, offsets, events


def fit_states(bank: ConvolutionBank, corpus: EventSequences, seed: int = 0) -> LocalStates:
    """Return the `COMPONENTS` first principal components of the local outputs on the corpus, each of variance 1."""
    local = LocalStates.of_bank(bank)
    rows = np.sort(np.random.default_rng([seed, 78]).permutation(len(corpus))[:_SAMPLED])
    outputs = local.raw(corpus[rows])[0].astype(np.float64)
    if not len(outputs):
        outputs = np.zeros((1, local.size))
    mean = outputs.mean(0)
    variance, axes = np.linalg.eigh((outputs - mean).T @ (outputs - mean) / len(outputs))
    axes, variance = axes[:, ::-1][:, :COMPONENTS], variance[::-1][:COMPONENTS]
    # A component that varies by rounding alone would be noise of the size of the others.
    scale = np.where(variance > 1e-4 * max(float(variance.max(initial=0.0)), 1e-12), variance, np.inf) ** -0.5
    matrix = (axes * scale).astype(np.float32)
    return local.mapped(matrix, (-mean @ matrix).astype(np.float32))


def spread(offsets: IntArray, most: int) -> tuple[IntArray, IntArray]:
    """Return at most `most` events of every sequence, evenly spread, and their offsets."""
    lengths = np.diff(offsets)
    if lengths.max(initial=0) <= most:
        return np.arange(offsets[0], offsets[-1]), offsets - offsets[0]
    numbers = np.minimum(lengths, most)
    starts = np.concatenate([[0], np.cumsum(numbers)])
    rank = np.arange(starts[-1]) - np.repeat(starts[:-1], numbers)
    return np.repeat(offsets[:-1], numbers) + rank * np.repeat(lengths, numbers) // np.repeat(numbers, numbers), starts


def _undilated(a: dict[str, npt.NDArray[Any]], kernel: int) -> bool:
    offsets = np.unique(a["offset"][a["begin"][kernel] : a["begin"][kernel + 1]])
    return len(offsets) == a["span"][kernel]


@numba.njit(cache=True, fastmath={"contract", "reassoc", "nsz"})
def _fill_states(
    offsets: Any, gaps: Any, values: Any, marks: Any, known: int,
    kept: Any, kept_offsets: Any, levels: Any, of_marks: Any, shift: Any, found: Any,
) -> None:  # fmt: skip  # pragma: no cover
    """Fill `found` (kept events, D); a missing gap counts as the mean gap of its sequence."""
    size, classes = len(shift), of_marks.shape[1] - 1
    for r in range(len(offsets) - 1):
        first, stop = offsets[r], offsets[r + 1]
        total, number = np.float32(0.0), 0
        for i in range(first, stop):
            if not np.isnan(gaps[i]):
                total += gaps[i]
                number += 1
        mean = total / np.float32(max(number, 1))
        for e in range(kept_offsets[r], kept_offsets[r + 1]):
            row = found[e]
            for d in range(size):
                row[d] = shift[d]
            for o in range(levels.shape[0]):
                i = kept[e] + o - REACH
                if i < first or i >= stop:
                    continue
                gap = mean if np.isnan(gaps[i]) else gaps[i]
                own = gap - mean
                kind = marks[i] % classes if 0 <= marks[i] < known else classes
                of_gap, of_own, of_mark = levels[o, 0], levels[o, 1], of_marks[o, kind]
                for d in range(size):
                    row[d] += gap * of_gap[d] + own * of_own[d] + of_mark[d]
                for v in range(values.shape[0]):
                    value, of_value = values[v, i], levels[o, 2 + v]
                    for d in range(size):
                        row[d] += value * of_value[d]
