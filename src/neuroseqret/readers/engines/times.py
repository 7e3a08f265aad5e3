"""Convert times as other tools write them (datetimes, integers, decimals, text) to float64."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.errors import DataError
from neuroseqret.readers.engines.damage import first_line
from neuroseqret.readers.engines.values import Locate, around_nulls, first_null, is_number

#: The unit of times that were read from datetimes: seconds since 1970-01-01 00:00 UTC.
DATETIME_UNIT = "seconds"
#: From here on a float64 cannot represent every whole number.
LARGEST_EXACT = 1 << 53
#: The remedy for text that is not a date.
WRITE_DATES = (
    "write dates as 2024-03-01 or 2024-03-01T09:14:07, with a zone or without, or say how they are written, for "
    "example --time-format '%d.%m.%Y %H:%M', in Python time_format=... of read or prepare"
)
_WHOLE_TEXT = re.compile(r"\s*([+-]?[0-9]+)(\.0*)?\s*")
_TICKS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def is_datetime(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def time_type(sample: str) -> pa.DataType:
    """Return the type of times that are written as text, numbers or datetimes, by their first value."""
    if not sample or is_number(sample):
        return pa.float64()
    zoned = sample.endswith("Z") or "+" in sample or sample.count("-") == 3
    return pa.timestamp("ns", "UTC") if zoned else pa.timestamp("ns")


def as_dates(texts: pa.ChunkedArray, kind: pa.DataType, what: str, first_row: int) -> pa.ChunkedArray:
    """Convert dates that are written as text to the type of `time_type`; `first_row` is the number of the first row."""
    try:
        return texts.cast(pa.large_string()).cast(kind)
    except pa.ArrowInvalid as error:
        for row, text in enumerate(texts.to_pylist()):
            if not _can_be(text, kind):
                like = " like the first one" if first_row + row else ""
                problem = f"row {first_row + row}: {what} is {text!r}, not a date{like}"
                raise DataError(problem, remedy=WRITE_DATES) from error
        raise


def as_formatted_dates(
    texts: pa.ChunkedArray, written: str, what: str, name_row: Callable[[int], str]
) -> pa.ChunkedArray:
    """Convert dates that are written as the format `written` says, in the codes of strptime, to timestamps."""
    plain = texts.cast(pa.string())
    if re.search("%[fzZ]", written):  # Arrow knows neither fractions nor zones
        return pa.chunked_array([_parsed(plain, written, what, name_row)])
    parsed = pa.compute.strptime(plain, written, "us", error_is_null=True)
    wrong = pa.compute.and_(parsed.is_null(), plain.is_valid())
    if pa.compute.any(wrong, min_count=0).as_py():
        row = int(np.argmax(np.asarray(wrong)))
        raise _other_format(plain[row].as_py(), written, what, name_row(row))
    return parsed


def _parsed(texts: pa.ChunkedArray, written: str, what: str, name_row: Callable[[int], str]) -> pa.Array:
    known: dict[str | None, datetime | None] = {None: None}
    dates = []
    for row, text in enumerate(texts.to_pylist()):
        if text not in known:
            try:
                date = datetime.strptime(text, written)
            except ValueError as error:
                raise _other_format(text, written, what, name_row(row)) from error
            known[text] = date if date.tzinfo is None else date.astimezone(timezone.utc).replace(tzinfo=None)
        dates.append(known[text])
    return pa.array(dates, pa.timestamp("us"))


def _other_format(text: str, written: str, what: str, row: str) -> DataError:
    return DataError(
        f"{row}: {what} is {text!r}, not written as {written!r}",
        remedy="correct it, or give the right --time-format (in Python time_format)",
    )


def _can_be(text: str | None, kind: pa.DataType) -> bool:
    try:
        pa.array([text], pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def unit_of(kind: pa.DataType) -> str | None:
    """Return the time unit that the type of a column implies, or None."""
    return DATETIME_UNIT if is_datetime(kind) or pa.types.is_duration(kind) else None


def check_unit(kind: pa.DataType, given: str | None) -> None:
    """Raise a `DataError` if the caller gave datetimes another unit than seconds."""
    implied = unit_of(kind)
    if implied is not None and given not in (None, implied):
        raise DataError(
            f"times are datetimes and read as {implied}, not {given!r}",
            remedy="leave out the time unit (--time-unit), or convert the column to numbers",
        )


def as_times(values: pa.Array, what: str, locate: Locate, missing_ok: bool = False) -> npt.NDArray[np.float64]:
    """Convert a flat column of times to float64; datetimes and durations become seconds.

    With `missing_ok` nulls become NaN, else they are an error.
    """
    kind = values.type
    if values.null_count:
        if missing_ok:
            return around_nulls(values, locate, np.nan, lambda known, where: as_times(known, what, where))
        sequence, position = locate(first_null(values))
        raise DataError(
            f"{what} is empty", sequence=sequence, position=position, remedy="drop the event or repair with 'drop'"
        )
    if pa.types.is_float64(kind):
        return values.to_numpy(zero_copy_only=False)
    if pa.types.is_date(kind):
        values, kind = values.cast(pa.timestamp("ms")), pa.timestamp("ms")
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        ticks = values.view(pa.int64()).to_numpy(zero_copy_only=False)
        # Whole seconds and the rest separately: nanoseconds since 1970 do not fit the 53 bits of a float64.
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


def not_rounded(
    times: npt.NDArray[np.float64], written: Sequence[Any] | npt.NDArray[Any], what: str, locate: Locate
) -> npt.NDArray[np.float64]:
    """Return the times, or raise a `DataError` if one was written as a whole number that a float64 cannot hold."""
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
    """Return the first time that was written as a whole number and has been rounded, or None."""
    for event in np.flatnonzero(np.abs(times) >= LARGEST_EXACT).tolist():
        whole = _WHOLE_TEXT.fullmatch(str(written[event]))
        if whole and not (np.isfinite(times[event]) and int(times[event]) == int(whole[1])):
            return int(event)
    return None
