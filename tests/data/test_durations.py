"""Times and durations as people write them."""

from __future__ import annotations

import pytest

from neuroseqret.data.durations import axis_unit, duration, is_date, moment, number, seconds_in, span


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "seconds", "0 s"),
        (4e-9, "seconds", "4 ns"),
        (0.0000123, "seconds", "12.3 µs"),
        (0.25, "s", "250 ms"),
        (90, "seconds", "90 s"),
        (150, "seconds", "2.5 min"),
        (-9000, "seconds", "-2.5 h"),
        (86400 * 3, "Seconds", "3 days"),
        (1500, "days", "4.11 years"),
        (5, "minutes since the source tweet", "5 min"),
        (360, "seconds (360 Hz samples)", "6 min"),
        (2.5, "quarter notes", "2.5 quarter notes"),
        (1.70928e9, "ticks", "1,709,280,000 ticks"),
        (1.70928e9, None, "1,709,280,000"),
        (float("nan"), "seconds", "nan seconds"),
    ],
)
def test_a_duration_is_in_the_unit_that_suits_it(value, unit, text):
    assert duration(value, unit) == text


def test_a_moment_is_a_date_only_if_it_counts_from_1970():
    assert moment(1709284447.9, "seconds") == "2024-03-01 09:14:07"
    assert moment(1709284447, None) == "1,709,284,447"  # nobody said that these are seconds
    assert moment(19783, "days") == "54.2 years"
    assert moment(3600, "seconds") == "60 min"
    assert is_date([1709284447e6], "microseconds")
    assert not is_date([1709284447, 5], "seconds")
    assert not is_date([float("nan")], "seconds")


def test_a_span_has_two_dates_or_none():
    assert span(1709284440, 1709370840, "seconds") == "2024-03-01 09:14 to 2024-03-02 09:14"
    assert span(1709251200, 1709337600, "seconds") == "2024-03-01 to 2024-03-02"
    assert span(0, 1709284440, "seconds") == "0 to 54.2 years"
    assert span(1, 2.5, None) == "1 to 2.5"
    assert span(1, 2.5, "quarter notes") == "1 to 2.5 quarter notes"
    assert span(1, 180, "seconds") == "1 s to 3 min"


def test_units_and_numbers():
    assert seconds_in("") is None
    assert seconds_in("hours, local time") == 3600
    assert axis_unit(5e-4, "seconds") == (1e-6, "microseconds")
    assert axis_unit(2, None) == (1.0, "time")
    assert number(999.4) == "999"
