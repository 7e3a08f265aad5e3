"""What looks wrong with data that is valid: no error, but worth a look before training on it."""

from __future__ import annotations

from neuroseqret.data.durations import is_date, moment, seconds_in
from neuroseqret.data.statistics import Statistics

_NOW = (1e8, 5e9)  # seconds since 1970 that are recent dates: 1973 to 2128
_MANY_TIES = 0.9


def doubts(numbers: Statistics) -> list[str]:
    """Return one line per thing that looks wrong, with what to do about it.

    The data may have no events, or only one event per sequence; all times may be equal; times may look like
    milliseconds; there may be one group only, or a group of its own for every sequence.
    """
    found = []
    if numbers.sequences and not numbers.events:
        found.append("no sequence has an event; check which columns hold times and marks (--column)")
    elif numbers.length_max == 1:
        found.append("every sequence has one event; check which column is the id (--column id=...)")
    if numbers.zero_gaps == 1.0:
        found.append("all times of a sequence are equal; check which column is the time (--column time=...)")
    elif numbers.zero_gaps is not None and numbers.zero_gaps > _MANY_TIES:
        found.append(f"{numbers.zero_gaps:.0%} of the events have the time of the event before; are times rounded?")
    if (of_unit := _wrong_unit(numbers)) is not None:
        found.append(of_unit)
    if numbers.groups == 1 and numbers.sequences > 1:
        found.append("there is one group only, so everything is relevant to everything; check --column group=...")
    elif numbers.groups is not None and numbers.groups == numbers.sequences > 1:
        found.append("every sequence has a group of its own, so nothing is relevant to anything; check --column group=")
    if numbers.marks > 1 and numbers.events and sum(count > 0 for count in numbers.mark_counts.values()) == 1:
        found.append("all events have the same mark; check which column is the mark (--column mark=...)")
    return found


def _wrong_unit(numbers: Statistics) -> str | None:
    """Say if times look like milliseconds, microseconds or nanoseconds since 1970 and are not called so."""
    first, last = numbers.first_time, numbers.last_time
    if first is None or last is None or is_date([first, last], numbers.time_unit):
        return None
    if numbers.time_unit is not None and seconds_in(numbers.time_unit) is None:
        return None
    for unit, size in (("milliseconds", 1e3), ("microseconds", 1e6), ("nanoseconds", 1e9)):
        if _NOW[0] <= first / size <= last / size <= _NOW[1]:
            dates = f"{moment(first, unit)} to {moment(last, unit)}"
            called = f"called {numbers.time_unit}" if numbers.time_unit else "without a unit"
            remedy = f"say --time-unit {unit} when you prepare or convert them"
            return f"times look like {unit} since 1970 ({dates}) but are {called}; {remedy}"
    return None
