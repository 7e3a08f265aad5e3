"""Values as other tools write them (datetimes, wide integers, text marks) to float64 times and int32 marks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line

#: The unit of times that were read from datetimes: seconds since 1970-01-01 00:00 UTC.
DATETIME_UNIT = "seconds"
#: Whole numbers in their usual spelling (so that no text is lost in them), and numbers in any.
WHOLE_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"
#: Digits with a leading zero, or more of them than a float keeps, are a code and no number: a postcode, a card.
NUMBER_PATTERN = r"^([+-]?(0|[1-9][0-9]{0,14}|(0|[1-9][0-9]*)?\.[0-9]+|(0|[1-9][0-9]*)\.)([eE][+-]?[0-9]+)?|nan|-?inf)$"
#: More kinds of events than this are taken for a damaged number.
MOST_MARKS = 1 << 20
#: From here on a float64 does not tell every whole number from the next.
LARGEST_EXACT = 1 << 53
#: The remedy where text is to be a date.
WRITE_DATES = "write dates as 2024-03-01 or 2024-03-01T09:14:07, with a zone or without"
_WHOLE_TEXT = re.compile(r"\s*([+-]?[0-9]+)(\.0*)?\s*")
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}

#: Says where a value is: flat event index to (sequence id, position), for errors.
Locate = Callable[[int], tuple[object, int | None]]


def locator(lengths: npt.NDArray[np.int64], name: Callable[[int], object]) -> Locate:
    """Finds events by the lengths of the sequences; `name` says what the sequence of a row is called."""

    def locate(event: int) -> tuple[object, int]:
        ends = np.cumsum(lengths)
        row = int(np.searchsorted(ends, event, side="right"))
        return name(row), event - int(ends[row] - lengths[row])

    return locate


def is_datetime(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def time_type(sample: str) -> pa.DataType:
    """Numbers or datetimes, for times that are written as text, by the first one that is there."""
    if not sample or is_number(sample):
        return pa.float64()
    zoned = sample.endswith("Z") or "+" in sample or sample.count("-") == 3
    return pa.timestamp("ns", "UTC") if zoned else pa.timestamp("ns")


def as_dates(texts: pa.ChunkedArray, kind: pa.DataType, what: str, first_row: int) -> pa.ChunkedArray:
    """Dates that are written as text, in the type that `time_type` tells; `first_row` is the row of the first one."""
    try:
        return texts.cast(pa.large_string()).cast(kind)
    except pa.ArrowInvalid as error:
        for row, text in enumerate(texts.to_pylist()):
            if not _can_be(text, kind):
                problem = f"row {first_row + row}: {what} is {text!r}, not a date like the first one"
                raise DataError(problem, remedy=f"{WRITE_DATES}, all alike") from error
        raise


def _can_be(text: str | None, kind: pa.DataType) -> bool:
    try:
        pa.array([text], pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def unit_of(kind: pa.DataType) -> str | None:
    """The time unit that a column's type implies, if it does."""
    return DATETIME_UNIT if is_datetime(kind) or pa.types.is_duration(kind) else None


def check_unit(kind: pa.DataType, given: str | None) -> None:
    """Datetimes are read as seconds, whatever unit the caller would like."""
    implied = unit_of(kind)
    if implied is not None and given not in (None, implied):
        raise DataError(
            f"times are datetimes and read as {implied}, not {given!r}",
            remedy="leave out the time unit (--time-unit), or convert the column to numbers",
        )


def as_times(values: pa.Array, what: str, locate: Locate, missing_ok: bool = False) -> npt.NDArray[np.float64]:
    """A flat column of times as float64; datetimes and durations become seconds, with `missing_ok` nulls NaN."""
    kind = values.type
    if values.null_count:
        if missing_ok:
            return _around_nulls(values, locate, np.nan, lambda known, where: as_times(known, what, where))
        sequence, position = locate(_first_null(values))
        raise DataError(
            f"{what} is null", sequence=sequence, position=position, remedy="drop the event or repair with 'drop'"
        )
    if pa.types.is_float64(kind):
        return values.to_numpy(zero_copy_only=False)
    if pa.types.is_date(kind):
        values, kind = values.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        ticks = values.view(pa.int64()).to_numpy(zero_copy_only=False)
        # Whole seconds and the rest apart: a count of nanoseconds since 1970 does not fit the 53 bits of a float.
        whole, rest = np.divmod(ticks, _TICKS[kind.unit])
        return whole + rest / _TICKS[kind.unit]
    if pa.types.is_integer(kind):
        written = values.to_numpy(zero_copy_only=False)
        return not_rounded(written.astype(np.float64), written, what, locate)
    if not (pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise DataError(f"{what} is {kind}, not a number or a datetime", remedy="convert the column")
    try:
        return values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise DataError(
            f"{what} does not fit a float64 ({first_line(error)})", remedy="convert it to seconds"
        ) from error


def _around_nulls(
    values: pa.Array, locate: Locate, missing: float, convert: Callable[[pa.Array, Locate], npt.NDArray[Any]]
) -> npt.NDArray[Any]:
    """The values that are there, converted, and `missing` in place of the others: data that is to be repaired."""
    known = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    found = convert(values.drop_null(), lambda event: locate(int(known[event])))
    full = np.full(len(values), missing, found.dtype)
    full[known] = found
    return full


def not_rounded(
    times: npt.NDArray[np.float64], written: Sequence[Any] | npt.NDArray[Any], what: str, locate: Locate
) -> npt.NDArray[np.float64]:
    """The same times, if none was written as a whole number that a float64 cannot hold."""
    event = first_rounded(times, written)
    if event is not None:
        sequence, position = locate(event)
        raise DataError(
            f"{what} does not fit a float64 ({written[event]})",
            sequence=sequence,
            position=position,
            remedy="convert it to seconds",
        )
    return times


def first_rounded(times: npt.NDArray[np.float64], written: Sequence[Any] | npt.NDArray[Any]) -> int | None:
    """The first time that was written as a whole number and is another now; only large ones are looked at."""
    for event in np.flatnonzero(np.abs(times) >= LARGEST_EXACT).tolist():
        whole = _WHOLE_TEXT.fullmatch(str(written[event]))
        if whole and not (np.isfinite(times[event]) and int(times[event]) == int(whole[1])):
            return int(event)
    return None


def as_marks(
    values: pa.Array, what: str, names: Sequence[str] | None, locate: Locate, missing_ok: bool = False
) -> npt.NDArray[np.int32]:
    """A flat column of marks as int32; text is looked up in `names`, with `missing_ok` nulls become -1."""
    kind = values.type
    if values.null_count:
        if missing_ok:
            return _around_nulls(values, locate, -1, lambda known, where: as_marks(known, what, names, where))
        sequence, position = locate(_first_null(values))
        raise DataError(
            f"{what} is null",
            sequence=sequence,
            position=position,
            remedy="drop the event, name it or repair with 'drop'",
        )
    if pa.types.is_int32(kind):
        return values.to_numpy(zero_copy_only=False)
    if is_text(kind):
        codes = pc.index_in(values.cast(pa.large_string()), pa.array(names or [], pa.large_string()))
        if codes.null_count:
            event = _first_null(codes)
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
    """Every text that occurs, sorted, so that the numbering does not hang on the order of rows."""
    found: set[str] = set()
    for part in parts:
        found.update(value for value in part.unique().cast(pa.large_string()).to_pylist() if value is not None)
    return tuple(sorted(found))


def numbers_if_all(texts: pa.Array) -> pa.Array:
    """Ids as int64 where all are whole numbers in their usual spelling (so that nothing is lost), else as they are."""
    plain = pc.match_substring_regex(texts, WHOLE_PATTERN)
    return texts.cast(pa.int64()) if not texts.null_count and pc.all(plain).as_py() else texts


def numbered_names(counts: Iterable[object]) -> tuple[str, ...] | None:
    """Names "0", "1", ... for files that say how many marks there are (None: they do not) and not their names."""
    said = {_whole(count) for count in counts if count is not None}
    if not said:
        return None
    number = next(iter(said))
    if len(said) > 1 or isinstance(number, str):
        every = " and ".join(map(str, sorted(said, key=str)))
        raise DataError(f"the number of marks is {every}", remedy="say one whole number")
    if not 0 < number <= MOST_MARKS:
        raise DataError(f"the number of marks is {number}", remedy=f"it must be from 1 to {MOST_MARKS}")
    return tuple(map(str, range(number)))


def mark_count(sequences: EventSequences) -> int:
    """How many marks there are, for files that say it; refused where such a file could not be read again."""
    if sequences.num_marks > MOST_MARKS:
        raise DataError(
            f"the largest mark is {sequences.num_marks - 1}, and the format counts at most {MOST_MARKS} marks",
            remedy="number the marks from 0, or read them as text",
        )
    return sequences.num_marks


def _whole(value: object) -> int | str:
    """A number as files write it (3, 3.0, an array of one) as an integer; anything else as text."""
    number = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    return int(number) if isinstance(number, (int, float)) and number % 1 == 0 else str(value)


def as_column(name: str, values: pa.Array) -> pa.Array:
    """`id`, `start`, `end` and `group` in their canonical types; of the others text becomes large text."""
    try:
        if name in ("id", "group"):
            values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
            return values.cast(pa.large_string())
        if name in ("start", "end"):
            bounds = as_times(values, f"{name!r}", lambda row: (f"in row {row}", None), missing_ok=True)
            return pa.array(bounds, mask=values.is_null().to_numpy(zero_copy_only=False))
        if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
            return values.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"column {name!r} is {values.type} ({first_line(error)})", remedy="convert the column"
        ) from error
    return values


def _first_null(values: pa.Array) -> int:
    return int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
