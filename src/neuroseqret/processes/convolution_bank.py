r"""A bank of random convolutions over the events of a sequence: which local patterns of gaps and marks it holds.

Each event i has channels :math:`x_{c,i}`: its standardised log gap, the same minus the mean of its sequence, its values
if the model learns from any, and random codes of its mark (fixed Gaussian numbers per mark, of mean 0 and variance 1
over the events of the corpus). Kernel k has taps t with a channel :math:`c_t`, an offset :math:`o_t` and a weight:

.. math:: y_{k,i} = \sum_{t \in k} w_t\, x_{c_t,\, i + o_t} - b_k, \qquad i = 0, \dots, m - 1, \quad m = n - \max_t o_t

The bias :math:`b_k` is a random quantile of the outputs of the kernel on some corpus sequences. Five numbers are kept
of the outputs: the mean position of the positive outputs, their share, the maximum, the mean of the positive outputs,
and their longest run,

.. math:: \tfrac1m \frac{\sum_i [y_i > 0]\, i}{\sum_i [y_i > 0]} \; (\tfrac12 \text{ if there are none}), \quad
          \tfrac1m \sum_i [y_i > 0], \quad \max_i y_i, \quad
          \frac{\sum_i [y_i > 0]\, y_i}{\max(1, \sum_i [y_i > 0])}, \quad
          \tfrac1m \max \{ j - i : y_i, \dots, y_{j-1} > 0 \}.

Each is z-scored over the corpus and clipped. A sequence that is too short for a kernel gets 0, the mean of the corpus.
Nothing is learned from relevance. The idea is that of ROCKET (Dempster et al. 2020) and MultiRocket (Tan et al. 2022),
applied to the gaps and marks of events.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes import bank_loops as loops
from neuroseqret.processes.bank_kernels import CODES, draw_codes, draw_kernels
from neuroseqret.processes.event_classes import log_gaps
from neuroseqret.processes.event_values import EventValues
from neuroseqret.processes.features import BOTH, FAR, MARKS, TIMES, Features, clipped_shares
from neuroseqret.processes.time_scale import TimeScale

if TYPE_CHECKING:  # a search computes features without importing torch
    from torch import Tensor

POOLINGS = 5  # position, share, maximum, mean, run
_SAMPLED = 256  # corpus sequences that the biases are taken from
_SAMPLED_EVENTS = 32768  # most events of these
_SCALED = 16384  # corpus sequences that the mean and scale of the features are taken from, at most
#: The types of the arrays that are saved.
_TYPES = {
    **dict.fromkeys(("begin", "channel", "offset", "span"), np.dtype(np.int64)),
    **dict.fromkeys(("codes", "tap", "bias", "mean", "weight"), np.dtype(np.float32)),
}
_BLOCK = 4096  # sequences whose statistics are held at once while fitting


class ConvolutionBank:
    """The kernels, the codes of marks, and the mean and scale of every feature, fitted on a corpus."""

    def __init__(
        self, scale: TimeScale, marks: int, saved: Mapping[str, npt.NDArray[Any] | Tensor], values: EventValues
    ) -> None:
        self.scale, self.marks, self.values = scale, marks, values
        self._arrays: dict[str, npt.NDArray[Any]] = {k: np.asarray(v) for k, v in saved.items()}
        self._check()

    def _check(self) -> None:
        """Raise a `ValueError` if the arrays, which may come from a file, do not fit together.

        The compiled loops do not check bounds.
        """
        a = self._arrays
        if missing := _TYPES.keys() - a.keys():
            raise ValueError(f"{min(missing)} is missing")
        kernels, taps, inputs = len(a["span"]), len(a["tap"]), loops.FIRST_VALUE + len(self.values.names)
        shapes = {
            "begin": (kernels + 1,),
            "span": (kernels,),
            "bias": (kernels,),
            "codes": (CODES, a["codes"].size // CODES),
        }
        shapes |= dict.fromkeys(("channel", "offset", "tap"), (taps,))
        shapes |= dict.fromkeys(("mean", "weight"), (POOLINGS * kernels,))
        for name, kind in _TYPES.items():
            if a[name].dtype != kind or a[name].shape != shapes[name]:
                raise ValueError(f"{name} has the shape {a[name].shape} and the type {a[name].dtype}")
        channel, offset, per_kernel = a["channel"], a["offset"], np.diff(a["begin"])
        if not (
            kernels > 0
            and a["codes"].size > CODES  # at least one class of marks, and unknown marks
            and a["begin"][0] == 0
            and a["begin"][-1] == taps
            and (per_kernel > 0).all()
            and ((channel >= 0) & (channel < inputs + CODES)).all()
            and ((offset >= 0) & (offset < np.repeat(a["span"], per_kernel))).all()
        ):
            raise ValueError("the taps of the bank lead outside the events")

    @classmethod
    def fit(
        cls, corpus: EventSequences, scale: TimeScale, marks: int, values: EventValues, kernels: int, seed: int
    ) -> ConvolutionBank:
        """Draw the kernels; take their biases and the mean and scale of every feature from the corpus."""
        rng = np.random.default_rng([seed, 77])
        lengths = corpus.lengths
        arrays = draw_kernels(kernels, float(np.median(lengths)) if len(lengths) else 1.0, len(values.names), rng)
        arrays["codes"] = draw_codes(corpus.marks, marks, rng)
        arrays["bias"] = np.zeros(kernels, np.float32)
        arrays["mean"], arrays["weight"] = (np.zeros(POOLINGS * kernels, np.float32) for _ in range(2))
        drawn = cls(scale, marks, arrays, values)
        drawn._fit_biases(corpus, rng)
        drawn._fit_scale(corpus, rng)
        return drawn

    @property
    def size(self) -> int:
        """The number of features: first all positions, then all shares, maxima, means and runs."""
        return len(self._arrays["mean"])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What was drawn and fitted, to be saved."""
        import torch

        return {name: torch.from_numpy(array) for name, array in self._arrays.items()}

    def features(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the statistics z-scored by the corpus, clipped to +-5, 0 if there are none: (sequences, size).

        `gaps` are the `log_gaps` of the sequences, if they are known.
        """
        found = self.statistics(sequences, gaps)
        loops.standardise(found, self._arrays["mean"], self._arrays["weight"], np.float32(FAR))
        return found

    def statistics(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the pooled outputs before the z-score, NaN if there are none: (sequences, size)."""
        found = np.empty((len(sequences), self.size), np.float32)
        loops.pooled(*self._events(sequences, gaps), *self._kernels(), self._arrays["bias"], found)
        return found

    def event_shares(self, sequence: EventSequences) -> tuple[FloatArray, FloatArray, IntArray]:
        """Split the features of one sequence over its events, as `MarkovRenewal.event_shares` does.

        Return the part of each event (events, size), the remainder (size,), and the kind of each feature (size,). An
        output belongs in equal parts to the events under its taps. A share, mean, run or position belongs to the
        outputs it is counted over, a maximum to the output that attains it.
        """
        a, number = self._arrays, len(sequence.times)
        outputs = np.full((len(a["span"]), max(number, 1)), np.nan, np.float32)
        loops.outputs(*self._events(sequence), *self._kernels(), a["bias"], outputs)
        statistics, kernels = self.statistics(sequence)[0].astype(np.float64), len(a["span"])
        shares = np.zeros((number, self.size))
        for k in range(kernels):
            m = number - int(a["span"][k]) + 1
            if m <= 0:
                continue
            y, taps = outputs[k, :m], np.unique(a["offset"][a["begin"][k] : a["begin"][k + 1]])
            for pooling, counted in enumerate(_counted(y)):
                total = counted.sum()
                if total > 0:
                    value = statistics[pooling * kernels + k] * counted / total / len(taps)
                    for offset in taps:
                        shares[offset : offset + m, pooling * kernels + k] += value
        weight = a["weight"].astype(np.float64)
        shares *= weight
        features = self.features(sequence)[0].astype(np.float64)
        return *clipped_shares(shares, features, a["mean"] * weight), np.tile(self._kinds(), POOLINGS)

    # ---------------------------------------------------------------- inside

    def _events(
        self, sequences: EventSequences, gaps: FloatArray | None = None
    ) -> tuple[IntArray, Features, Features, npt.NDArray[np.int32], int]:
        """Return offsets, log gaps (NaN if there is none), values (columns, events), marks, number of known marks."""
        gaps = log_gaps(sequences, self.scale) if gaps is None else gaps
        values = self.values.of(sequences)
        return sequences.offsets, gaps.astype(np.float32), values, sequences.marks, self.marks

    def _kernels(self) -> tuple[npt.NDArray[Any], ...]:
        return tuple(self._arrays[name] for name in ("codes", "begin", "channel", "offset", "tap", "span"))

    def _kinds(self) -> IntArray:
        """Return what each kernel compares: marks, times (gaps and values), or both."""
        a = self._arrays
        first_code = loops.FIRST_VALUE + len(self.values.names)
        kinds = np.empty(len(a["span"]), np.int64)
        for k, (begin, end) in enumerate(zip(a["begin"][:-1], a["begin"][1:], strict=True)):
            of_marks = a["channel"][begin:end] >= first_code
            kinds[k] = MARKS if of_marks.all() else BOTH if of_marks.any() else TIMES
        return kinds

    def _fit_biases(self, corpus: EventSequences, rng: np.random.Generator) -> None:
        chosen = np.sort(rng.permutation(len(corpus))[:_SAMPLED])
        offsets, gaps, values, marks, known = self._events(corpus[chosen])
        last = max(1, int(np.searchsorted(offsets, _SAMPLED_EVENTS, side="right")) - 1)
        quantile = rng.uniform(0.05, 0.95, len(self._arrays["span"]))
        loops.quantiles(
            offsets[: last + 1], gaps, values, marks, known, *self._kernels(), quantile, self._arrays["bias"]
        )

    def _fit_scale(self, corpus: EventSequences, rng: np.random.Generator) -> None:
        number, total, squares = np.zeros(self.size), np.zeros(self.size), np.zeros(self.size)
        rows = np.sort(rng.permutation(len(corpus))[:_SCALED])
        for begin in range(0, len(rows), _BLOCK):
            block = self.statistics(corpus[rows[begin : begin + _BLOCK]])
            number += np.isfinite(block).sum(0)
            block = np.nan_to_num(block, nan=0.0)
            total += block.sum(0, dtype=np.float64)
            squares += np.square(block, dtype=np.float64).sum(0)
        mean = total / np.maximum(number, 1)
        sd = np.sqrt(np.maximum(squares / np.maximum(number, 1) - mean**2, 0.0))
        self._arrays["mean"][:] = mean
        self._arrays["weight"][:] = np.where(sd > 1e-5, 1 / np.maximum(sd, 1e-5), 0.0)


def _counted(y: Features) -> list[FloatArray]:
    """Return how much each output counts in mean position, share, maximum, mean and longest run: each (outputs,)."""
    positive = (y > 0).astype(np.float64)
    highest, run = np.zeros(len(y)), np.zeros(len(y))
    highest[int(np.argmax(y))] = 1.0
    begin, end = loops.longest_run_place(y)
    run[begin:end] = 1.0
    return [positive * np.arange(len(y)), positive, highest, positive * y, run]
