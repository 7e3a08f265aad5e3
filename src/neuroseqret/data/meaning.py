"""What the numbers of sequences mean: how many marks there are, what they are called, what one unit of time is.

Text marks are numbered file by file, so integer 7 may be `buy` in one file and `view` in another. A trained method and
an index know one numbering. `Meaning.apply` is the one place where sequences are brought into it, whichever way they
come in: command line, Python, index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal, get_args

import numpy as np
import pyarrow as pa

from neuroseqret.data.repair import keep_events
from neuroseqret.data.sequences import EventSequences, IntArray
from neuroseqret.errors import DataError, UserError

#: What to do with an event whose mark is not known: refuse it, leave the event out, or keep it as one unknown mark.
UnknownMarks = Literal["error", "drop", "keep"]
#: The name of the mark that stands for all unknown ones where they are kept.
UNKNOWN = "(unknown)"


def unknown_marks_choice(text: str) -> UnknownMarks:
    """Return the choice that a user named, or raise a `UserError` that lists them."""
    for choice in get_args(UnknownMarks):
        if text == choice:
            return choice
    raise UserError(f"unknown marks can be {', '.join(get_args(UnknownMarks))}, not {text!r}")


@dataclass(frozen=True)
class Meaning:
    """The numbering of marks and the time unit that a method learned with; None where it is not known."""

    marks: int | None = None
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None

    @classmethod
    def of(cls, sequences: EventSequences) -> Meaning:
        """What the numbers of some sequences mean."""
        return cls(max(sequences.num_marks, 1), sequences.mark_names, sequences.time_unit)

    def apply(
        self,
        sequences: EventSequences,
        unknown_marks: UnknownMarks = "error",
        file: str | PathLike[str] | None = None,
    ) -> EventSequences:
        """Return the sequences with marks numbered as here, by name; the same object where they are already.

        Marks without names are taken by number, unless numbers are names here: then a number is a name too. Another
        time unit is an error. `unknown_marks` decides about marks that are not known here; `keep` makes them one mark
        called `(unknown)`, or keeps their numbers where marks have no names.
        """
        unknown_marks = unknown_marks_choice(unknown_marks)
        self._check_unit(sequences, file)
        _check_span(sequences, file)
        if self._is_spoken_by(sequences):
            return sequences
        names = self.mark_names if self.mark_names is not None else tuple(map(str, range(self.marks or 0)))
        given, place = np.unique(sequences.marks, return_inverse=True)
        place = place.ravel()
        called = [_called(int(mark), sequences.mark_names, names) for mark in given]
        numbers = {name: number for number, name in enumerate(names)}
        new = np.array([numbers.get(name, -1) for name in called], np.int32)
        unknown = new < 0
        if unknown.any() and unknown_marks == "error":
            raise self._refusal(sequences, int(np.argmax(unknown[place])), called, place, names, file)
        if unknown.any() and unknown_marks == "drop":
            return self.apply(_without(sequences, np.flatnonzero(~unknown[place]), file))
        if unknown.any():
            named = self.mark_names is not None or sequences.mark_names is not None
            new = np.where(unknown, len(names) if named else given, new).astype(np.int32)
        after = self.mark_names
        if after is not None and (new >= len(names)).any():
            after = (*after, UNKNOWN)
        table = sequences.table if np.array_equal(new, given) else _with_marks(sequences, new[place])
        return EventSequences(table, after, sequences.time_unit)

    def check_same(self, other: Meaning, what: str) -> None:
        """Raise where `what`, trained with another meaning, is known to differ in marks or unit from the index's."""
        if None not in (other.mark_names, self.mark_names) and other.mark_names != self.mark_names:
            raise UserError(
                f"{what}: learned the marks {_few(other.mark_names or ())}; the index has {_few(self.mark_names or ())}"
            )
        if None not in (other.time_unit, self.time_unit) and other.time_unit != self.time_unit:
            raise UserError(f"{what}: learned times in {other.time_unit}; the index has {self.time_unit}")

    def _is_spoken_by(self, sequences: EventSequences) -> bool:
        """Whether nothing has to be done."""
        if self.mark_names is not None:
            return sequences.mark_names in (self.mark_names, (*self.mark_names, UNKNOWN))
        if self.marks is None:
            return True
        return sequences.mark_names is None and int(sequences.marks.max(initial=-1)) < self.marks

    def _check_unit(self, sequences: EventSequences, file: str | PathLike[str] | None) -> None:
        if None not in (self.time_unit, sequences.time_unit) and self.time_unit != sequences.time_unit:
            raise DataError(
                f"times are in {sequences.time_unit}, the model's in {self.time_unit}",
                file=file,
                remedy="convert the times, or 'neuroseqret data convert --time-unit' if only the unit's name is wrong",
            )

    def _refusal(
        self,
        sequences: EventSequences,
        event: int,
        called: Sequence[str],
        place: IntArray,
        names: Sequence[str],
        file: str | PathLike[str] | None,
    ) -> DataError:
        row = int(np.searchsorted(sequences.offsets, event, side="right")) - 1
        return DataError(
            f"mark {called[place[event]]!r} is unknown to the model, which knows {_few(names)}",
            file=file,
            sequence=sequences.ids[row].as_py(),
            position=event - int(sequences.offsets[row]),
            remedy="leave such events out or count them as one unknown mark (--unknown-marks drop or keep; in Python "
            "unknown_marks), or fit a model to data that has them",
        )


def _check_span(sequences: EventSequences, file: str | PathLike[str] | None) -> None:
    """Raise a `DataError` if the duration of a window overflows; no method could compute with it."""
    starts, ends = sequences.observed()
    with np.errstate(over="ignore", invalid="ignore"):
        if len(too_long := np.flatnonzero(np.isinf(ends - starts))):
            raise DataError(
                "its times are further apart than a float64 can hold",
                file=file,
                sequence=sequences.ids[int(too_long[0])].as_py(),
                remedy="subtract an offset, or use a larger unit of time",
            )


def _called(mark: int, own: Sequence[str] | None, names: Sequence[str]) -> str:
    """What a file calls a mark: by its own name, else by number, which is the model's own or one of its names."""
    if own is not None:
        return own[mark]
    by_name = mark >= len(names) or any(name.isdecimal() for name in names)
    return str(mark) if by_name else names[mark]


def _without(sequences: EventSequences, kept: IntArray, file: str | PathLike[str] | None) -> EventSequences:
    """The sequences with some of their events; one that had events and has none left is an error."""
    left = keep_events(sequences, kept)
    if len(empty := np.flatnonzero((left.lengths == 0) & (sequences.lengths > 0))):
        raise DataError(
            "no event has a mark that the model knows",
            file=file,
            sequence=sequences.ids[int(empty[0])].as_py(),
            remedy="leave the sequence out, or keep unknown marks",
        )
    return left


def _with_marks(sequences: EventSequences, marks: np.ndarray) -> pa.Table:
    table = sequences.table
    column = pa.LargeListArray.from_arrays(pa.array(sequences.offsets), pa.array(marks))
    return table.set_column(table.column_names.index("marks"), "marks", column)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f", ... ({len(names)})" if len(names) > 8 else "")
