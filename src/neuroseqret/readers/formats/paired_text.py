"""Paired text files `NAME_ev.txt` and `NAME_ti.txt`: one line per sequence, marks in the first, times in the second.

This is the format of the paper's authors. Sequences have no ids, so they are numbered from 0.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import pyarrow as pa

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.text import whole_text
from neuroseqret.readers.engines.times import not_rounded
from neuroseqret.readers.engines.values import locator
from neuroseqret.readers.options import Options
from neuroseqret.storage.files import new_file

MARKS_END, TIMES_END = "_ev.txt", "_ti.txt"


def pair_of(path: str | PathLike[str]) -> tuple[Path, Path]:
    """Return the files of marks and of times, by the name of either or by the common part of their names."""
    name = str(path)
    common = next((name.removesuffix(end) for end in (MARKS_END, TIMES_END) if name.endswith(end)), name)
    return Path(common + MARKS_END), Path(common + TIMES_END)


def is_pair(path: str | PathLike[str]) -> bool:
    """Return True if both files exist."""
    return all(file.is_file() for file in pair_of(path))


def read(path: str | PathLike[str], options: Options) -> EventSequences:
    """Read all sequences of both files."""
    marks_file, times_file = pair_of(path)
    marks, mark_lengths = _numbers(marks_file, pa.int64())
    times, lengths = _numbers(times_file, pa.float64())
    if len(lengths) != len(mark_lengths):
        raise DataError(
            f"{len(mark_lengths)} lines, but {times_file.name} has {len(lengths)}",
            file=marks_file,
            remedy="give each sequence one line in both files",
        )
    differ = np.flatnonzero(lengths != mark_lengths)
    if len(differ):
        row = int(differ[0])
        raise DataError(
            f"{mark_lengths[row]} marks but {lengths[row]} times",
            file=marks_file,
            sequence=row,
            remedy="give one mark per time",
        )
    return EventSequences.from_arrays(
        times, marks, np.concatenate([[0], np.cumsum(lengths)]), mark_names=options.mark_names, validate=False
    )


def _numbers(file: Path, kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
    """Return all numbers of a file and their count per line; blank lines at the end are not sequences."""
    lines = [line.split() for line in whole_text(file).rstrip().split("\n")]
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    words = [word for line in lines for word in line]
    try:
        numbers = pa.array(words, pa.string()).cast(kind).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        numbers = _number_by_number(file, lines, kind)
    if pa.types.is_floating(kind):
        _check_exact(file, numbers, words, lengths)
    return numbers, lengths


def _check_exact(file: Path, times: np.ndarray, words: list[str], lengths: np.ndarray) -> None:
    """Raise a `DataError` if a time is a whole number that a float64 cannot hold."""
    try:
        not_rounded(times, words, "time", locator(lengths, int))
    except DataError as error:
        error.file = file
        raise


def _number_by_number(file: Path, lines: list[list[str]], kind: pa.DataType) -> np.ndarray:
    """Parse one by one, for marks such as `3.0` and to say which word is not a number."""
    numbers = []
    for row, line in enumerate(lines):
        for position, word in enumerate(line):
            try:
                numbers.append(float(word))
            except ValueError:
                what = "mark" if pa.types.is_integer(kind) else "time"
                raise DataError(
                    f"{what} {word!r:.40} is not a number",
                    file=file,
                    sequence=row,
                    position=position,
                    remedy="write numbers only",
                ) from None
    return np.array(numbers)


def write(sequences: EventSequences, path: str | PathLike[str]) -> None:
    """Write times (exactly) and marks; these files hold nothing else."""
    marks_file, times_file = pair_of(path)
    with (
        new_file(marks_file) as marks_new,
        new_file(times_file) as times_new,
        marks_new.open("w") as marks_out,
        times_new.open("w") as times_out,
    ):
        for times, marks in sequences.to_lists():
            marks_out.write(" ".join(map(str, marks)) + "\n")
            times_out.write(" ".join(map(repr, times)) + "\n")
