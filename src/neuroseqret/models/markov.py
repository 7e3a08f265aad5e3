r"""A Markov-renewal process: a second generative model, closed form, whose Fisher vector needs no training.

Each event's mark depends on the two marks before it, its gap on its own mark, the one before and two gaps before:

.. math:: \log p(H) = \sum_i \log P_{x_{i-2} x_{i-1} x_i} + \log Q_{x_{i-1} x_i k_i} + \log R_{k_{i-2} k_{i-1} k_i}
                      + \log S_{l_{i-1} l_i} + \log W_{w_i}

with :math:`k_i` the class of gap i on the data's global scale (quantiles of the corpus), :math:`l_i` its class after
the sequence's own mean is taken off, and :math:`w_i` the part of the observation window that the event falls in. Every
table is a multinomial with observed shares :math:`\hat p_a = n_a / n` and corpus shares :math:`p_a`; its score is
:math:`n_a - n p_a`, counts minus expected counts. The multinomial family is a sphere in the coordinates
:math:`\sqrt{p_a}`, where Fisher's metric is flat (:math:`2 \sqrt n (\sqrt{\hat p_a} - \sqrt{p_a})` is the whitened
score to first order), so roots of shares are taken, centred and whitened by the corpus' diagonal second moment: in
effect z-scored histograms of marks, mark pairs, gaps, mark-gap and gap-gap pairs, the strongest simple features there
are. The sufficient statistics of log-normal gaps with memory (mean, sd, skewness, lagged products, mean per mark,
length, duration) complete them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from neuroseqret.models.features import TimeScale, gaps_of
from neuroseqret.sequences import EventSequences, FloatArray, IntArray

Features = npt.NDArray[np.float32]

FINE, COARSE, OWN, OWN_COARSE, PARTS_OF_WINDOW, LAGS = 24, 8, 16, 6, 10, 6
#: Of mark pairs, mark triples and mark pairs with a gap class only the most frequent ones are kept.
MOST = {"pairs": 256, "triples": 192, "timed_pairs": 192}
QUARTERS = 4  # classes of the gap in tables of three variables
#: What a coordinate of a vector compares, for explanations.
PARTS = ("marks", "times", "marks and times", "whole sequence")
MARKS, TIMES, BOTH, WHOLE = range(4)
_FAR = 5.0  # whitened features are clipped here
_CHUNK = 1 << 24  # numbers in one table of counts, which bounds the memory


@dataclass(frozen=True)
class _Table:
    """Events counted into classes; `total` is the number of each sequence that shares are taken of."""

    part: int
    events: IntArray
    codes: IntArray
    classes: int
    total: IntArray


class MarkovRenewal:
    """Fitted on a corpus: classes of gaps, kept mark pairs, mean and scale of every feature."""

    def __init__(self, scale: TimeScale, marks: int, tensors: dict[str, Tensor]) -> None:
        self.scale, self.marks, self.tensors = scale, marks, tensors
        self._arrays: dict[str, npt.NDArray[Any]] = {k: v.numpy() for k, v in tensors.items()}

    @classmethod
    def fit(cls, corpus: EventSequences, scale: TimeScale, marks: int) -> MarkovRenewal:
        model = cls(scale, marks, {})
        gaps, own, _ = model._gaps(corpus)
        timed = np.isfinite(gaps)
        arrays: dict[str, npt.NDArray[Any]] = {
            "fine": _quantiles(gaps[timed], FINE),
            "coarse": _quantiles(gaps[timed], COARSE),
            "own": _quantiles(own[timed], OWN),
            "own_coarse": _quantiles(own[timed], OWN_COARSE),
            "quarter": _quantiles(gaps[timed], QUARTERS),
        }
        model = cls(scale, marks, {k: torch.from_numpy(v) for k, v in arrays.items()})
        for name, (_, codes) in model._mark_codes(corpus, _rows(corpus), gaps).items():
            kinds, number = np.unique(codes, return_counts=True)
            arrays[name] = np.sort(kinds[np.argsort(-number, kind="stable")[: MOST[name]]])
        model = cls(scale, marks, {k: torch.from_numpy(v) for k, v in arrays.items()})
        total, squares = 0.0, 0.0
        for _, block in model._blocks(corpus):
            total, squares = total + block.sum(0, dtype=np.float64), squares + np.square(block, dtype=np.float64).sum(0)
        mean = total / max(len(corpus), 1)
        sd = np.sqrt(np.maximum(squares / max(len(corpus), 1) - mean**2, 0.0))
        arrays["mean"] = np.asarray(mean, np.float32)
        # A feature that is the same everywhere says nothing, also where a new sequence differs in it.
        arrays["weight"] = np.where(sd > 1e-5, 1 / np.maximum(sd, 1e-5), 0.0).astype(np.float32)
        return cls(scale, marks, {k: torch.from_numpy(v) for k, v in arrays.items()})

    @property
    def size(self) -> int:
        return len(self.tensors["mean"])

    def features(self, sequences: EventSequences) -> Features:
        """Centred, whitened, clipped to +-5: (sequences, size)."""
        whole = np.empty((len(sequences), self.size), np.float32)
        for rows, block in self._blocks(sequences):
            whole[rows] = np.clip((block - self._arrays["mean"]) * self._arrays["weight"], -_FAR, _FAR)
        return whole

    # ---------------------------------------------------------------- statistics

    def _blocks(self, sequences: EventSequences) -> Iterator[tuple[slice, Features]]:
        step = max(1, _CHUNK // 2048)
        for begin in range(0, len(sequences), step):
            rows = slice(begin, min(begin + step, len(sequences)))
            yield rows, self.statistics(sequences[rows])

    def _gaps(self, sequences: EventSequences) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Standardised log gaps, the same less the sequence's mean (both flat, NaN where none), and that mean."""
        raw = gaps_of(sequences)
        gaps = np.clip((np.log(raw + self.scale.eps) - self.scale.mean) / self.scale.sd, -6.0, 6.0)
        rows, timed = _rows(sequences), np.isfinite(gaps)
        number = np.maximum(np.bincount(rows[timed], minlength=len(sequences)), 1)
        mean = np.bincount(rows[timed], gaps[timed], minlength=len(sequences)) / number
        return gaps, gaps - mean[rows], mean

    def _mark_codes(
        self, sequences: EventSequences, rows: IntArray, gaps: FloatArray
    ) -> dict[str, tuple[IntArray, IntArray]]:
        """Pairs, triples and pairs with the second one's gap class: last event of each, and a number for the kind."""
        known, size = sequences.marks < self.marks, self.marks
        marks = sequences.marks.astype(np.int64)
        classes = self._classes(gaps, ("quarter",))["quarter"]
        pair = _runs_of(2, rows, known)
        triple = _runs_of(3, rows, known)
        timed = pair[np.isfinite(gaps[pair + 1])]
        return {
            "pairs": (pair + 1, marks[pair] * size + marks[pair + 1]),
            "triples": (triple + 2, (marks[triple] * size + marks[triple + 1]) * size + marks[triple + 2]),
            "timed_pairs": (timed + 1, (marks[timed] * size + marks[timed + 1]) * QUARTERS + classes[timed + 1]),
        }

    def statistics(self, sequences: EventSequences) -> Features:
        """Roots of shares of every table, and moments, before centring: (sequences, size)."""
        number, rows = len(sequences), _rows(sequences)
        gaps, own, mean = self._gaps(sequences)
        blocks = []
        for table in self._tables(sequences, rows, gaps, own):
            cells = rows[table.events] * table.classes + table.codes
            counts = np.bincount(cells, minlength=number * table.classes).reshape(number, table.classes)
            blocks.append(np.sqrt(counts / np.maximum(table.total, 1)[:, None]))
        both = self._marked_gaps(sequences, gaps)
        blocks += self._means_per_mark(rows[both] * self.marks + sequences.marks[both], (gaps[both], own[both]), number)
        gapped = np.bincount(rows[np.isfinite(gaps)], minlength=number)
        blocks.append(self._moments(sequences, rows, gaps, own, mean, gapped))
        return np.concatenate(blocks, axis=1).astype(np.float32)

    def event_shares(self, sequence: EventSequences) -> tuple[FloatArray, FloatArray, IntArray]:
        """Of one sequence: its features as a sum over events (events, size) and a rest (size,); and which `PARTS` entry
        every feature compares (size,).

        An entry of a table, or a mean per mark, is shared evenly by the events counted in it.
        """
        events, rows = len(sequence.times), _rows(sequence)
        gaps, own, _ = self._gaps(sequence)
        counted, kinds = [], []
        for table in self._tables(sequence, rows, gaps, own):
            ones = np.zeros((events, table.classes))
            ones[table.events, table.codes] = 1.0
            counted.append(ones)
            kinds.append(np.full(table.classes, table.part))
        both = self._marked_gaps(sequence, gaps)
        ones = np.zeros((events, self.marks))
        ones[both, sequence.marks[both]] = 1.0
        counted += [ones, ones]
        kinds += [np.full(self.marks, BOTH)] * 2
        rest = self.size - sum(x.shape[1] for x in counted)
        counted.append(np.zeros((events, rest)))  # moments belong to the whole sequence
        kinds.append(np.full(rest, WHOLE))
        shares = np.concatenate(counted, axis=1)
        shares /= np.maximum(shares.sum(0), 1)
        weight = self._arrays["weight"].astype(np.float64)
        shares *= self.statistics(sequence)[0] * weight
        features = self.features(sequence)[0].astype(np.float64)
        unclipped = shares.sum(0) - self._arrays["mean"] * weight
        kept = np.divide(features, unclipped, out=np.ones_like(features), where=np.abs(unclipped) > _FAR)
        shares *= kept
        return shares, features - shares.sum(0), np.concatenate(kinds)

    def _tables(self, sequences: EventSequences, rows: IntArray, gaps: FloatArray, own: FloatArray) -> Iterator[_Table]:
        """Every table of the process, as the events that are counted and the cells that they fall in."""
        timed, known = np.isfinite(gaps), sequences.marks < self.marks
        marks = np.where(known, sequences.marks, 0).astype(np.int64)
        both_timed, all_timed = _runs_of(2, rows, timed), _runs_of(3, rows, timed)
        classes = self._classes(gaps, ("fine", "coarse", "quarter")) | self._classes(own, ("own", "own_coarse"))
        sizes = {k: len(self._arrays[k]) + 1 for k in classes}
        events, steps = sequences.lengths, np.maximum(sequences.lengths - 1, 1)
        gapped = np.bincount(rows[timed], minlength=len(sequences))
        marked, has_gap, both = np.flatnonzero(known), np.flatnonzero(timed), np.flatnonzero(known & timed)
        yield _Table(MARKS, marked, marks[marked], self.marks, events)
        for name, (last, codes) in self._mark_codes(sequences, rows, gaps).items():
            place, kept = _places(self._arrays[name], codes)
            part = BOTH if name == "timed_pairs" else MARKS
            yield _Table(part, last[kept], place[kept], len(self._arrays[name]), steps)
        for name in ("fine", "own"):
            yield _Table(TIMES, has_gap, classes[name][has_gap], sizes[name], gapped)
        marked_gap = marks[both] * sizes["coarse"] + classes["coarse"][both]
        yield _Table(BOTH, both, marked_gap, self.marks * sizes["coarse"], gapped)
        for name in ("coarse", "own_coarse"):
            following = classes[name][both_timed] * sizes[name] + classes[name][both_timed + 1]
            yield _Table(TIMES, both_timed + 1, following, sizes[name] ** 2, steps)
        quarter, size = classes["quarter"], sizes["quarter"]
        triples = (quarter[all_timed] * size + quarter[all_timed + 1]) * size + quarter[all_timed + 2]
        yield _Table(TIMES, all_timed + 2, triples, size**3, steps)
        yield _Table(TIMES, np.arange(len(rows)), self._part_of_window(sequences, rows), PARTS_OF_WINDOW, events)

    def _classes(self, values: FloatArray, names: tuple[str, ...]) -> dict[str, IntArray]:
        """Class of every value (an absent one counts as 0) by each of the named edges: one search for all of them."""
        edges = [self._arrays[name] for name in names]
        every = np.unique(np.concatenate(edges))
        place = np.searchsorted(every, np.nan_to_num(values, copy=True))
        below = np.concatenate([[-np.inf], every])  # the edge that a value at this place is above of
        return {k: np.searchsorted(e, below, side="right")[place] for k, e in zip(names, edges, strict=True)}

    def _marked_gaps(self, sequences: EventSequences, gaps: FloatArray) -> IntArray:
        """Events with a known mark and a gap before them."""
        return np.flatnonzero((sequences.marks < self.marks) & np.isfinite(gaps))

    @staticmethod
    def _part_of_window(sequences: EventSequences, rows: IntArray) -> IntArray:
        """Which of the equal parts of its window each event falls in."""
        starts, ends = sequences.observed()
        span = np.maximum(ends - starts, np.finfo(np.float64).tiny)
        part: IntArray = (np.clip((sequences.times - starts[rows]) / span[rows], 0, 1) * PARTS_OF_WINDOW).astype(
            np.int64
        )
        return np.minimum(part, PARTS_OF_WINDOW - 1)

    def _means_per_mark(self, cells: IntArray, values: tuple[FloatArray, ...], number: int) -> list[FloatArray]:
        """Mean gap before each mark, on both scales; 0 where the mark does not occur."""
        size = number * self.marks
        counts = np.maximum(np.bincount(cells, minlength=size), 1)
        return [(np.bincount(cells, v, minlength=size) / counts).reshape(number, self.marks) for v in values]

    def _moments(
        self,
        sequences: EventSequences,
        rows: IntArray,
        gaps: FloatArray,
        own: FloatArray,
        mean: FloatArray,
        n: IntArray,
    ) -> FloatArray:
        """Of log gaps: mean, sd, log sd, skewness, lagged correlations, size of changes; log length and duration."""
        number = np.maximum(n, 1)
        centred = np.nan_to_num(own)

        def total(values: FloatArray, at: IntArray) -> FloatArray:
            sums: FloatArray = np.bincount(at, values, minlength=len(sequences)).astype(np.float64)
            return sums

        variance = total(centred**2, rows) / number
        sd = np.sqrt(variance) + 1e-3
        first, last = sequences.first_and_last()
        columns = [
            mean,
            sd,
            np.log(sd),
            total(centred**3, rows) / number / sd**3,
            np.log(sequences.lengths),
            np.log(last - first + self.scale.eps),
        ]
        for lag in range(1, LAGS + 1):
            at = np.flatnonzero(rows[lag:] == rows[:-lag])
            product = total(centred[at] * centred[at + lag], rows[at])
            columns.append(product / np.maximum(sequences.lengths - lag, 1) / np.maximum(variance, 1e-3))
        at = np.flatnonzero(rows[1:] == rows[:-1])
        change = np.nan_to_num(gaps[at + 1] - gaps[at])
        steps = np.maximum(sequences.lengths - 1, 1)
        columns += [total(np.abs(change), rows[at]) / steps, np.log(total(change**2, rows[at]) / steps + 1e-4)]
        return np.clip(np.stack(columns, axis=1), -50.0, 50.0)


def _rows(sequences: EventSequences) -> IntArray:
    """The sequence that each event belongs to."""
    return np.repeat(np.arange(len(sequences)), sequences.lengths)


def _runs_of(number: int, rows: IntArray, usable: npt.NDArray[np.bool_]) -> IntArray:
    """First events of all runs of `number` usable events of one sequence."""
    if len(rows) < number:
        return np.empty(0, np.int64)
    last = len(rows) - number + 1
    same = rows[:last] == rows[number - 1 :]
    for shift in range(number):
        same &= usable[shift : shift + last]
    return np.flatnonzero(same)


def _places(kinds: IntArray, codes: IntArray) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Where each code stands among the sorted kinds, and whether it is there at all."""
    if not len(kinds):
        return np.zeros(len(codes), np.int64), np.zeros(len(codes), bool)
    place = np.minimum(np.searchsorted(kinds, codes), len(kinds) - 1)
    return place, kinds[place] == codes


def _quantiles(values: FloatArray, number: int) -> FloatArray:
    """Edges between `number` classes of like size; fewer where values are tied.

    An edge lies half-way between two values that occur, never on one: clocks tick, so most gaps of some data are equal
    up to rounding, and an edge at such a value would put them on both sides by chance.
    """
    kinds, counts = np.unique(np.round(values, 6), return_counts=True)
    if len(kinds) < 2:
        return np.zeros(1)
    share = np.cumsum(counts) / len(values)
    below = np.searchsorted(share, np.arange(1, number) / number - 1e-9)
    below = np.unique(np.minimum(below, len(kinds) - 2))
    edges: FloatArray = (kinds[below] + kinds[below + 1]) / 2
    return edges
