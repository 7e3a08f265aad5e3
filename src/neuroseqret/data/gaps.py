"""Typical gaps between events, to notice a wrong time unit: milliseconds taken for seconds, hours for minutes.

The gap of a sequence is the median of its positive gaps. A model remembers three quantiles of them over its corpus.
Sequences are suspicious if their median gap differs from the model's by a factor of 100 or more and is also outside
what nearly all sequences of the corpus had; so data whose gaps differ widely by nature raises no alarm.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from os import PathLike

import numpy as np
import numpy.typing as npt

from neuroseqret.data.durations import duration, number, seconds_in
from neuroseqret.data.sequences import EventSequences, FloatArray, IntArray
from neuroseqret.errors import DataError

#: The 1 % quantile, the median and the 99 % quantile of the gaps of sequences.
TypicalGaps = tuple[float, float, float]
FACTOR = 100.0
_SOME = 20_000  # sequences are enough to tell


class TimeUnitWarning(UserWarning):
    """The times of sequences are probably in another unit than those that the model learned from."""


def gaps_of(sequences: EventSequences) -> FloatArray:
    """Return the median positive gap of every sequence that has one."""
    return _gaps_by_row(sequences)[1]


def _gaps_by_row(sequences: EventSequences) -> tuple[IntArray, FloatArray]:
    """Return the rows that have a positive gap, and the median of each row's positive gaps."""
    some = sequences[:_SOME]
    if len(some) == 1:  # a query: no rows to tell apart
        gaps = some.times[1:] - some.times[:-1]
        gaps = np.sort(gaps[gaps > 0])
        middle = (gaps[[(len(gaps) - 1) // 2]] + gaps[[len(gaps) // 2]]) / 2 if len(gaps) else gaps
        return np.zeros(len(middle), np.int64), middle
    from neuroseqret.data.gap_loops import median_gaps  # here, as it imports numba, which takes longer than a query

    found = np.empty(len(some))
    median_gaps(some.times, some.offsets, found)
    rows = np.flatnonzero(~np.isnan(found))
    return rows, found[rows]


def rows_to_check(sequences: EventSequences, known: TypicalGaps | None) -> IntArray:
    """Return the rows whose own gap is suspicious, in one pass over many queries.

    `wrong_gaps` of some rows can only find something wrong if one of them is among these: what is not suspicious is
    one interval around the model's median, and the median of numbers in an interval lies in it.
    """
    if known is None:
        return np.empty(0, np.int64)
    rows, gaps = _gaps_by_row(sequences)
    return rows[~_usual(gaps, known)]


def _usual(gap: FloatArray, known: TypicalGaps) -> npt.NDArray[np.bool_]:
    """Whether gaps are within a factor of the model's median, or among those of nearly all sequences of the corpus."""
    low, usual, high = known
    ratio = gap / usual
    return ((ratio > 1 / FACTOR) & (ratio < FACTOR)) | ((low <= gap) & (gap <= high))


def typical_gaps(sequences: EventSequences) -> TypicalGaps | None:
    """Return the quantiles that a model remembers, None if no sequence has a gap."""
    gaps = gaps_of(sequences)
    if not len(gaps):
        return None
    low, middle, high = np.quantile(gaps, (0.01, 0.5, 0.99)).tolist()
    return low, middle, high


def wrong_gaps(
    sequences: EventSequences,
    known: TypicalGaps | None,
    unit: str | None,
    file: str | PathLike[str] | None = None,
) -> DataError | None:
    """Return what is wrong if the times look like another unit than the model's (`known`, in `unit`), else None."""
    gaps = gaps_of(sequences) if known is not None else np.empty(0)
    if known is None or not len(gaps):
        return None
    usual, found = known[1], float(gaps[0] if len(gaps) == 1 else np.median(gaps))
    if _usual(np.array(found), known):
        return None
    ratio = found / usual
    own = sequences.time_unit or unit
    times = f"{max(ratio, 1 / ratio):,.0f} times {'longer' if ratio > 1 else 'shorter'}"
    problem = (
        f"the typical gap between events is {_said(found, own)}, {times} than the {_said(usual, unit)} "
        "that the model learned from"
    )
    return DataError(problem, file=file, remedy="check the unit of the times, and convert them if it is another one")


def check_gaps(
    sequences: EventSequences,
    known: TypicalGaps | None,
    unit: str | None,
    *,
    strict: bool = False,
    file: str | PathLike[str] | None = None,
    stacklevel: int = 2,
) -> bool:
    """Warn if the times look like another unit than the model's; with `strict` raise instead.

    Return whether they look right.
    """
    error = wrong_gaps(sequences, known, unit, file)
    if error is None:
        return True
    if strict:
        raise error
    warnings.warn(str(error), TimeUnitWarning, stacklevel=stacklevel + 1)
    return False


def checked_gaps(
    batches: Iterable[EventSequences],
    known: TypicalGaps | None,
    unit: str | None,
    *,
    strict: bool = False,
    file: str | PathLike[str] | None = None,
) -> Iterator[EventSequences]:
    """Yield batches as they are, and check them up to the first one that looks wrong: one warning is enough."""
    looks_right = True
    for batch in batches:
        looks_right = looks_right and check_gaps(batch, known, unit, strict=strict, file=file)
        yield batch


def _said(gap: float, unit: str | None) -> str:
    """Return a gap in the data's unit, and in a readable one if that is another."""
    plain, readable = number(gap) if unit is None else f"{number(gap)} {unit}", duration(gap, unit)
    return plain if seconds_in(unit) is None or readable.split()[0] == number(gap) else f"{plain} ({readable})"
