"""Times and durations as people write them: `2.5 h`, `2024-03-01 09:14`, `12.5 quarter notes`.

Times are float64 numbers in the data's own unit. The first word of the unit counts: `seconds (360 Hz samples)` are
seconds. A unit that is not a unit of time by the clock, such as `quarter notes`, stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from math import isfinite

#: Names of units, and how many seconds each has.
_SECONDS = {
    ("nanosecond", "nanoseconds", "ns"): 1e-9,
    ("microsecond", "microseconds", "us", "µs"): 1e-6,
    ("millisecond", "milliseconds", "ms"): 1e-3,
    ("second", "seconds", "sec", "secs", "s"): 1.0,
    ("minute", "minutes", "min", "mins"): 60.0,
    ("hour", "hours", "h"): 3600.0,
    ("day", "days", "d"): 86400.0,
    ("week", "weeks"): 7 * 86400.0,
    ("year", "years"): 365.25 * 86400.0,
}
_SECONDS_OF = {name: seconds for names, seconds in _SECONDS.items() for name in names}
#: The units that durations are shown in: shown name, full name, seconds, and from how many seconds on it is used.
_SHOWN = (
    ("ns", "nanoseconds", 1e-9, 0.0),
    ("µs", "microseconds", 1e-6, 1e-6),
    ("ms", "milliseconds", 1e-3, 1e-3),
    ("s", "seconds", 1.0, 1.0),
    ("min", "minutes", 60.0, 120.0),
    ("h", "hours", 3600.0, 7200.0),
    ("days", "days", 86400.0, 2 * 86400.0),
    ("years", "years", 365.25 * 86400.0, 2 * 365.25 * 86400.0),
)
#: Times in seconds since 1970 are shown as dates from 1973 to 2286; smaller ones count from some other beginning.
_DATES = (1e8, 1e10)


def seconds_in(unit: str | None) -> float | None:
    """Return how many seconds one unit of time has, None if the unit is unknown or not one of the clock.

    >>> seconds_in("minutes since the source tweet"), seconds_in("quarter notes"), seconds_in(None)
    (60.0, None, None)
    """
    first = (unit or "").split(maxsplit=1)[:1]
    return _SECONDS_OF.get(first[0].rstrip(",;:").lower()) if first else None


def duration(value: float, unit: str | None) -> str:
    """Return a length of time in the unit that suits its size.

    >>> duration(9000, "seconds"), duration(0.34, "seconds"), duration(3.5, "days"), duration(12.5, "quarter notes")
    ('2.5 h', '340 ms', '3.5 days', '12.5 quarter notes')
    >>> duration(1709284447, None)
    '1,709,284,447'
    """
    seconds = seconds_in(unit)
    if seconds is None or not isfinite(value):
        return number(value) if unit is None else f"{number(value)} {unit}"
    name, _, size, _ = _suitable(value * seconds)
    return f"{number(value * seconds / size)} {name}"


def moment(value: float, unit: str | None) -> str:
    """Return a point in time: as a date (UTC) if it counts from 1970, else as the duration since the beginning.

    >>> moment(1709284440, "seconds"), moment(1709251200000, "ms"), moment(75, "minutes")
    ('2024-03-01 09:14', '2024-03-01', '75 min')
    """
    return _date(value, unit) if is_date([value], unit) else duration(value, unit)


def span(first: float, last: float, unit: str | None) -> str:
    """Return from when to when; both are dates, or neither is.

    >>> span(1709284440, 1709288040, "seconds"), span(0, 75, "minutes")
    ('2024-03-01 09:14 to 10:14', '0 to 75 min')
    """
    if not is_date([first, last], unit):
        return durations(first, last, unit)
    begin, end = _date(first, unit), _date(last, unit)
    day, _, clock = end.partition(" ")
    return f"{begin} to {clock if clock and begin.startswith(day) else end}"


def durations(shorter: float, longer: float, unit: str | None) -> str:
    """Return two lengths of time, with the unit only once if it is the same.

    >>> durations(9000, 36000, "seconds"), durations(60, 36000, "seconds")
    ('2.5 to 10 h', '60 s to 10 h')
    """
    begin, end = duration(shorter, unit), duration(longer, unit)
    same_unit = begin.partition(" ")[2] == end.partition(" ")[2]
    return f"{begin.partition(' ')[0] if same_unit or not shorter else begin} to {end}"


def is_date(times: Sequence[float], unit: str | None) -> bool:
    """Return whether times are seconds (or milli-, micro-, nanoseconds) since 1970."""
    seconds = seconds_in(unit)
    return seconds is not None and seconds <= 1 and all(_DATES[0] <= t * seconds <= _DATES[1] for t in times)


def axis_unit(length: float, unit: str | None) -> tuple[float, str]:
    """Return what to divide times by on an axis of this length, and the unit to write at the axis.

    >>> axis_unit(10_000, "seconds"), axis_unit(3, "quarter notes")
    ((3600.0, 'hours'), (1.0, 'quarter notes'))
    """
    seconds = seconds_in(unit)
    if seconds is None:
        return 1.0, unit or "time"
    _, name, size, _ = _suitable(length * seconds)
    return size / seconds, name


def number(value: float) -> str:
    """Return a number with three digits, or all digits before the point: never `1.70928e+09`.

    >>> number(0.12345), number(12345.6), number(7.0)
    ('0.123', '12,346', '7')
    """
    return f"{value:,.0f}" if isfinite(value) and abs(value) >= 1000 else f"{value:.3g}"


def _suitable(seconds: float) -> tuple[str, str, float, float]:
    size = abs(seconds)
    if not size:
        return next(shown for shown in _SHOWN if shown[0] == "s")
    return next(shown for shown in reversed(_SHOWN) if size >= shown[3])


def _date(value: float, unit: str | None) -> str:
    at = datetime.fromtimestamp(int(value * (seconds_in(unit) or 1.0)), timezone.utc)
    if at.second:
        return f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{at:%Y-%m-%d %H:%M}" if at.hour or at.minute else f"{at:%Y-%m-%d}"
