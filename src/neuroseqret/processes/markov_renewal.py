r"""A Markov-renewal process: a second generative model, in closed form, whose Fisher vector needs no training.

The mark of an event depends on the two marks before it; its gap depends on its mark, the mark before and the two gaps
before:

.. math:: \log p(H) = \sum_i \log P_{x_{i-2} x_{i-1} x_i} + \log Q_{x_{i-1} x_i k_i} + \log R_{k_{i-2} k_{i-1} k_i}
                      + \log S_{l_{i-1} l_i} + \log W_{w_i}

where :math:`k_i` is the class of gap i on the global scale (quantiles of the corpus), :math:`l_i` its class after
subtracting the mean of its sequence, and :math:`w_i` the part of the observation window that the event falls in.

Every table is a multinomial with observed shares :math:`\hat p_a = n_a / n` and corpus shares :math:`p_a`; its score is
:math:`n_a - n p_a`, counts minus expected counts. The multinomial family is a sphere in the coordinates
:math:`\sqrt{p_a}`, where Fisher's metric is flat (:math:`2 \sqrt n (\sqrt{\hat p_a} - \sqrt{p_a})` is the whitened
score to first order). So the features are square roots of shares, centred and whitened by the diagonal second moment
of the corpus. In effect these are z-scored histograms of marks, mark pairs, gaps, mark-gap pairs and gap-gap pairs,
which are strong simple features. The sufficient statistics of log-normal gaps with memory (mean, sd, skewness, lagged
products, mean per mark, length, duration) complete them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.processes import markov_loops as loops
from neuroseqret.processes.event_classes import PARTS_OF_WINDOW, log_gaps, part_of_window, quantiles
from neuroseqret.processes.features import BOTH, FAR, MARKS, TIMES, WHOLE, Features, clipped_shares
from neuroseqret.processes.shared_classes import Marks, shared_classes
from neuroseqret.processes.time_scale import TimeScale

if TYPE_CHECKING:  # a search computes features without importing torch
    from torch import Tensor

FINE, COARSE, OWN, OWN_COARSE = 24, 8, 16, 6  # classes of gaps in the tables
#: How many mark pairs, mark triples and mark pairs with a gap class are kept: the most frequent ones.
MOST = {"pairs": 256, "triples": 192, "timed_pairs": 192}
#: The most classes of marks: in the table of marks, and in the tables of marks and gaps.
MARK_CLASSES = {"mark_classes": 1024, "timed_mark_classes": 64}
QUARTERS = 4  # gap classes in tables of three variables
_LOOKED_UP = 1 << 18  # largest lookup table from mark codes to positions
_SUMMED = 8192  # sequences whose statistics are held at once while fitting
_EVENTS = 8192  # events that are counted at once, so that their cells stay in the cache


@dataclass(frozen=True)
class _Table:
    """A table whose cells count events; the shares are of the events, steps or gaps of the sequence (`total`)."""

    name: str
    part: int
    total: int


#: A pair or triple is counted at its last event.
_TABLES = (
    _Table("marks", MARKS, loops.EVENTS),
    _Table("pairs", MARKS, loops.STEPS),
    _Table("triples", MARKS, loops.STEPS),
    _Table("timed_pairs", BOTH, loops.STEPS),
    _Table("gaps", TIMES, loops.GAPS),
    _Table("own_gaps", TIMES, loops.GAPS),
    _Table("marked_gaps", BOTH, loops.GAPS),
    _Table("gap_pairs", TIMES, loops.STEPS),
    _Table("own_gap_pairs", TIMES, loops.STEPS),
    _Table("gap_triples", TIMES, loops.STEPS),
    _Table("parts_of_window", TIMES, loops.EVENTS),
)
_TOTALS = np.array([table.total for table in _TABLES])
_EDGES = ("fine", "coarse", "own", "own_coarse", "quarter")  # of the classes of gaps
_ARRAYS = {*_EDGES, *MOST, "mean", "weight"}  # that are always there


@dataclass(frozen=True)
class _Events:
    """What the statistics are computed from: the gaps of all events, and their cell in every table."""

    gaps: FloatArray  # (events,) standardised log gaps, NaN if there is none
    own: FloatArray  # (events,) the gaps minus the mean of the sequence
    mean: FloatArray  # (sequences,)
    gapped: IntArray  # (sequences,) number of gaps
    marks: Marks  # (events,) classes of marks, as in the tables of marks and gaps
    cells: IntArray  # (tables, events), -1 if there is none


class MarkovRenewal:
    """The gap classes, the kept mark pairs, and the mean and scale of every feature, fitted on a corpus."""

    def __init__(
        self, scale: TimeScale, marks: int, saved: Mapping[str, npt.NDArray[Any] | Tensor], fitting: bool = False
    ) -> None:
        self.scale, self.marks = scale, marks
        self._arrays: dict[str, npt.NDArray[Any]] = {k: np.asarray(v) for k, v in saved.items()}
        self._classes, self._timed_classes = (min(marks, most) for most in MARK_CLASSES.values())
        if not fitting:
            self._check()
        self._places = {name: _places(self._arrays[name]) for name in MOST}

    def _check(self) -> None:
        """Raise a `ValueError` if the arrays, which may come from a file, do not fit together."""
        if missing := _ARRAYS - self._arrays.keys():
            raise ValueError(f"{min(missing)} is missing")
        if flawed := [name for name, array in self._arrays.items() if array.ndim != 1]:
            raise ValueError(f"{flawed[0]} has the shape {self._arrays[flawed[0]].shape}")
        size = sum(self._table_sizes()) + 2 * self._timed_classes + loops.MOMENTS
        if any(self._arrays[name].shape != (size,) for name in ("mean", "weight")):
            raise ValueError(f"the tables have {size} cells, their means {self._arrays['mean'].shape}")
        for name, most in MARK_CLASSES.items():  # the compiled loops do not check bounds
            classes = self._arrays.get(name)
            if classes is None:
                continue
            if classes.shape != (self.marks,) or not ((classes >= 0) & (classes < most)).all():
                raise ValueError(f"{name} are not the classes of {self.marks} marks")

    @classmethod
    def fit(cls, corpus: EventSequences, scale: TimeScale, marks: int) -> MarkovRenewal:
        """Fit gap classes, kept pairs and triples of marks, and the mean and scale of every feature on a corpus."""
        gaps = log_gaps(corpus, scale)
        own, _, _ = loops.own_gaps(corpus.offsets, gaps)
        timed = np.isfinite(gaps)
        arrays: dict[str, npt.NDArray[Any]] = {
            "fine": quantiles(gaps[timed], FINE),
            "coarse": quantiles(gaps[timed], COARSE),
            "own": quantiles(own[timed], OWN),
            "own_coarse": quantiles(own[timed], OWN_COARSE),
            "quarter": quantiles(gaps[timed], QUARTERS),
        }
        codes = loops.mark_codes(corpus.offsets, corpus.marks, gaps, arrays["quarter"], marks)
        for (name, most), of_events in zip(MOST.items(), codes, strict=True):
            kinds, number = np.unique(of_events[of_events >= 0], return_counts=True)
            arrays[name] = np.sort(kinds[np.argsort(-number, kind="stable")[:most]])
        for name, most in MARK_CLASSES.items():
            if (classes := shared_classes(corpus.marks, marks, most)) is not None:
                arrays[name] = classes
        model = cls(scale, marks, arrays, fitting=True)
        total, squares = 0.0, 0.0
        for begin in range(0, len(corpus), _SUMMED):
            block = model.statistics(corpus[begin : begin + _SUMMED])
            total, squares = total + block.sum(0, dtype=np.float64), squares + np.square(block, dtype=np.float64).sum(0)
        mean = total / max(len(corpus), 1)
        sd = np.sqrt(np.maximum(squares / max(len(corpus), 1) - mean**2, 0.0))
        arrays["mean"] = np.asarray(mean, np.float32)
        # A feature that is constant over the corpus gets weight 0, even if a new sequence differs in it.
        arrays["weight"] = np.where(sd > 1e-5, 1 / np.maximum(sd, 1e-5), 0.0).astype(np.float32)
        return cls(scale, marks, arrays)

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self._arrays["mean"])

    @property
    def tensors(self) -> dict[str, Tensor]:
        """What was fitted, to be saved."""
        import torch

        return {name: torch.from_numpy(array) for name, array in self._arrays.items()}

    def features(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the statistics centred, whitened and clipped to +-5: (sequences, size).

        `gaps` are the `log_gaps` of the sequences, if they are known.
        """
        found = self.statistics(sequences, gaps)
        found -= self._arrays["mean"]
        found *= self._arrays["weight"]
        return np.clip(found, -FAR, FAR, out=found)

    # ---------------------------------------------------------------- statistics

    def statistics(self, sequences: EventSequences, gaps: FloatArray | None = None) -> Features:
        """Return the square roots of the shares of every table, and the moments, before centring: (sequences, size)."""
        begin, offsets = np.cumsum([0, *self._table_sizes()]), sequences.offsets
        gaps = log_gaps(sequences, self.scale) if gaps is None else gaps
        found = np.zeros((len(sequences), begin[-1] + 2 * self._timed_classes + loops.MOMENTS), np.float32)
        for rows in _blocks(offsets):
            self._count(sequences[rows], gaps[offsets[rows.start] : offsets[rows.stop]], begin, found[rows])
        return found

    def _count(self, sequences: EventSequences, gaps: FloatArray, begin: IntArray, found: Features) -> None:
        """Fill `found` with the statistics of some sequences; table t has the columns begin[t] to begin[t + 1]."""
        events, offsets = self._events(sequences, gaps), sequences.offsets
        loops.roots_of_shares(offsets, events.cells, begin, _TOTALS, events.gapped, found)
        of_marks, rest = found[:, begin[-1] : -loops.MOMENTS], found[:, -loops.MOMENTS :]
        loops.means_per_mark(offsets, events.marks, events.gaps, events.own, self._timed_classes, of_marks)
        first, last = sequences.first_and_last()
        duration = np.log(last - first + self.scale.eps)
        loops.moments(offsets, events.gaps, events.own, events.mean, events.gapped, duration, rest)

    def event_shares(self, sequence: EventSequences) -> tuple[FloatArray, FloatArray, IntArray]:
        """Split the features of one sequence over its events.

        Return the part of each event (events, size), the remainder (size,), and the entry of `PARTS` that each feature
        belongs to (size,). The events counted in a cell, or in a mean per mark, get equal parts of it.
        """
        number, events = len(sequence.times), self._events(sequence, log_gaps(sequence, self.scale))
        counted, kinds = [], []
        for table, cells, size in zip(_TABLES, events.cells, self._table_sizes(), strict=True):
            ones = np.zeros((number, size))
            ones[cells >= 0, cells[cells >= 0]] = 1.0
            counted.append(ones)
            kinds.append(np.full(size, table.part))
        both = np.flatnonzero((events.marks < self._timed_classes) & np.isfinite(events.gaps))
        ones = np.zeros((number, self._timed_classes))
        ones[both, events.marks[both]] = 1.0
        counted += [ones, ones]
        kinds += [np.full(self._timed_classes, BOTH)] * 2
        rest = self.size - sum(x.shape[1] for x in counted)
        counted.append(np.zeros((number, rest)))  # moments belong to the whole sequence
        kinds.append(np.full(rest, WHOLE))
        shares = np.concatenate(counted, axis=1)
        shares /= np.maximum(shares.sum(0), 1)
        weight = self._arrays["weight"].astype(np.float64)
        shares *= self.statistics(sequence)[0] * weight
        features = self.features(sequence)[0].astype(np.float64)
        return *clipped_shares(shares, features, self._arrays["mean"] * weight), np.concatenate(kinds)

    def _events(self, sequences: EventSequences, gaps: FloatArray) -> _Events:
        """Compute the cells of all events."""
        offsets, marks, edges = sequences.offsets, sequences.marks, self._arrays
        own, mean, gapped = loops.own_gaps(offsets, gaps)
        cells = np.empty((len(_TABLES), len(gaps)), np.int64)
        classes = self._marks_as("mark_classes", marks)
        cells[0] = np.where(classes < self._classes, classes, -1)
        codes = loops.mark_codes(offsets, marks, gaps, edges["quarter"], self.marks)
        for name, of_events, out in zip(MOST, codes, cells[1:], strict=False):
            loops.kept_places(of_events, edges[name], self._places[name], out)
        timed = self._marks_as("timed_mark_classes", marks)
        of_gaps = [edges[name] for name in _EDGES]
        loops.gap_cells(offsets, timed, gaps, own, *of_gaps, self._timed_classes, cells[1 + len(MOST) : -1])
        cells[-1] = part_of_window(sequences)
        return _Events(gaps, own, mean, gapped, timed, cells)

    def _marks_as(self, name: str, marks: Marks) -> Marks:
        """Return the classes of marks; an unknown mark gets the number after the last class."""
        classes = self._arrays.get(name)
        if classes is None:
            return marks
        of_marks: Marks = classes[np.minimum(marks, self.marks - 1)]
        of_marks[marks >= self.marks] = MARK_CLASSES[name]
        return of_marks

    def _table_sizes(self) -> list[int]:
        """Return the number of cells of every table, in the order of `_TABLES`."""
        kinds = [len(self._arrays[name]) for name in MOST]
        fine, coarse, own, own_coarse, quarter = (len(self._arrays[name]) + 1 for name in _EDGES)
        of_gaps = [fine, own, self._timed_classes * coarse, coarse**2, own_coarse**2, quarter**3]
        return [self._classes, *kinds, *of_gaps, PARTS_OF_WINDOW]


def _blocks(offsets: IntArray) -> Iterator[slice]:
    """Yield runs of sequences with at most `_EVENTS` events in total; a longer sequence is a run of its own."""
    begin = 0
    while begin < len(offsets) - 1:
        end = int(np.searchsorted(offsets, offsets[begin] + _EVENTS, side="right")) - 1
        yield slice(begin, max(begin + 1, end))
        begin = max(begin + 1, end)


def _places(kinds: IntArray) -> IntArray:
    """Return a lookup table from codes to their position in `kinds` (-1: not kept); empty if it would be too large."""
    if not len(kinds) or kinds[-1] >= _LOOKED_UP:
        return np.empty(0, np.int64)
    places = np.full(kinds[-1] + 1, -1, np.int64)
    places[kinds] = np.arange(len(kinds))
    return places
