"""Convert marks as other tools write them (numbers, text, categories) to int32; names of marks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.values import Locate, around_nulls, first_null, is_text

#: More marks than this are taken for a damaged number.
MOST_MARKS = 1 << 20


def as_marks(
    values: pa.Array, what: str, names: Sequence[str] | None, locate: Locate, missing_ok: bool = False
) -> npt.NDArray[np.int32]:
    """Convert a flat column of marks to int32; text is looked up in `names`.

    With `missing_ok` nulls become -1, else they are an error.
    """
    kind = values.type
    if values.null_count:
        if missing_ok:
            return around_nulls(values, locate, -1, lambda known, where: as_marks(known, what, names, where))
        sequence, position = locate(first_null(values))
        raise DataError(
            f"{what} is empty",
            sequence=sequence,
            position=position,
            remedy="drop the event, give it a mark or repair with 'drop'",
        )
    if pa.types.is_int32(kind):
        return values.to_numpy(zero_copy_only=False)
    if is_text(kind):
        codes = pc.index_in(values.cast(pa.large_string()), pa.array(names or [], pa.large_string()))
        if codes.null_count:
            event = first_null(codes)
            sequence, position = locate(event)
            raise DataError(
                f"{what} {values[event].as_py()!r} is not among the mark names",
                sequence=sequence,
                position=position,
                remedy="name every mark",
            )
        return codes.to_numpy(zero_copy_only=False)
    if pa.types.is_dictionary(kind):  # numbers as categories
        return as_marks(values.dictionary_decode(), what, names, locate)
    if pa.types.is_boolean(kind):
        return values.cast(pa.int32()).to_numpy(zero_copy_only=False)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(f"{what} is {kind}, not an integer or text", remedy="convert the column")
    numbers = values.to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):
        marks = numbers.astype(np.int32)
    wrong = np.flatnonzero(marks != numbers)
    if len(wrong):
        sequence, position = locate(int(wrong[0]))
        raise DataError(
            f"{what} {numbers[wrong[0]]} is not a 32-bit integer",
            sequence=sequence,
            position=position,
            remedy="number the marks from 0",
        )
    return marks


def sorted_names(parts: Iterable[pa.Array]) -> tuple[str, ...]:
    """Return every text that occurs, sorted, so that the numbering does not depend on the order of rows."""
    found: set[str] = set()
    for part in parts:
        found.update(value for value in part.unique().cast(pa.large_string()).to_pylist() if value is not None)
    return tuple(sorted(found))


def numbered_names(counts: Iterable[object]) -> tuple[str, ...] | None:
    """Return the names "0", "1", ... for files that give only the number of marks; None if they do not give it."""
    said = {_whole(count) for count in counts if count is not None}
    if not said:
        return None
    number = next(iter(said))
    if len(said) > 1 or isinstance(number, str):
        every = " and ".join(map(str, sorted(said, key=str)))
        raise DataError(f"the number of marks is {every}", remedy="give one whole number")
    if not 0 < number <= MOST_MARKS:
        raise DataError(f"the number of marks is {number}", remedy=f"it must be from 1 to {MOST_MARKS}")
    return tuple(map(str, range(number)))


def mark_count(sequences: EventSequences) -> int:
    """Return the number of marks, for files that store it; raise a `DataError` if it is too large to be read again."""
    if sequences.num_marks > MOST_MARKS:
        raise DataError(
            f"the largest mark is {sequences.num_marks - 1}, but the format has at most {MOST_MARKS} marks",
            remedy="number the marks from 0, or read them as text",
        )
    return sequences.num_marks


def _whole(value: object) -> int | str:
    """Return a number as files write it (3, 3.0, an array of one) as an integer; anything else as text."""
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    return int(number) if isinstance(number, (int, float)) and number % 1 == 0 else str(value)
