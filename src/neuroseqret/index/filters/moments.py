"""Dates and times in conditions: ISO 8601 text to `date` and `datetime`."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

from neuroseqret.index.filters.tree import Unusable

_MOMENT = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?(?:(Z)|([+-])(\d\d):(\d\d))?)?", re.ASCII
)


def parse_moment(text: str) -> datetime:
    """Return a date with or without a time, as 2024-05-31 or 2024-05-31 18:00:00.25+02:00; a date is its midnight."""
    found = _MOMENT.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
        fraction, utc, sign, hours, minutes = found.groups()[6:]
        zone = timezone.utc if utc else None
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            zone = timezone(-offset if sign == "-" else offset)
        return datetime(year, month, day, hour, minute, second, int((fraction or "").ljust(6, "0")), zone)
    except ValueError as error:
        raise Unusable(f"{text[:60]!r} is no date or time; write 2024-05-31 or 2024-05-31 18:00:00") from error


def parse_day(text: str) -> date:
    """Return a date such as 2024-05-31."""
    if len(text) != 10:
        raise Unusable(f"{text[:60]!r} is no date; write 2024-05-31")
    return parse_moment(text).date()
