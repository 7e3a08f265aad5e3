"""Tables and numbers of a page."""

from __future__ import annotations

import numpy as np

from experiments.markdown import (
    MISSING,
    NOTHING,
    Finding,
    bold_best,
    counted,
    decimals,
    listed,
    measured_table,
    number,
    of_in_words,
    point_column,
    points,
    table,
)
from experiments.measured import label


def test_parts_of_a_whole_in_words():
    assert [of_in_words(part, 8) for part in (0, 3, 8)] == ["none of eight", "three of eight", "all eight"]


def test_points_are_mean_and_deviation_of_a_sample():
    assert points(np.array([10.0, 12.0, 14.0])) == "12.0 ± 2.0"
    assert points(np.array([10.0, 11.0])) == "10.5 ± 0.7"
    assert points(np.array([3.14])) == "3.1"
    assert points(np.array([])) == "–"
    assert points(np.array([1.234, 1.238]), places=2) == "1.24 ± 0.00"


def test_numbers_have_a_minus_sign_and_zero_has_none():
    assert (number(-1.25, "+.1f"), number(2.0, "+.1f"), number(-0.04, "+.1f"), number(0.04, "+.2f")) == (
        "−1.2",
        "+2.0",
        "0.0",
        "+0.04",
    )
    assert number(float("nan")) == MISSING


def test_small_columns_have_two_decimals_and_all_that_print_the_best_are_bold():
    assert (decimals([9.9, float("nan")]), decimals([10.0, 0.1]), decimals([])) == (2, 1, 1)
    assert point_column([np.array([1.501]), np.array([1.499]), np.array([]), np.array([1.4])]) == [
        "**1.50**",
        "**1.50**",
        MISSING,
        "1.40",
    ]
    assert bold_best(["2.0 ± 0.1", "2.0 ± 0.3"], [2.01, 1.99]) == ["**2.0 ± 0.1**", "**2.0 ± 0.3**"]


def test_small_parts():
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"
    assert table(["a", "b", "c"], [["x", "y", "1"]], text=2).splitlines()[1] == "| --- | --- | ---: |"
    gaps = [["x", "1", MISSING, ""], ["y", MISSING, MISSING, ""]]
    assert measured_table(["a", "b", "c", "d"], gaps) == "| a | b |\n| --- | ---: |\n| x | 1 |"
    assert measured_table(["a", "b"], [["x", MISSING]]) == NOTHING
    assert bold_best(["1", "2", "–"], [1.0, 2.0, float("nan")]) == ["1", "**2**", "–"]
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("none", "a", "a, b and c")
    assert counted({"up on": (1, 2), "nothing": (0, 0)}) == "up on 1 of 2 sets"
    assert str(Finding("Claim.", "")) == "- **The paper:** Claim. **Here:** Not measured yet."
    assert (label(("self", "default")), label(("thp", "default"))) == ("self (default)", "thp")


def test_a_bar_in_a_name_does_not_break_a_table():
    assert table(["", "a|b"], [["x", "1"]]).splitlines()[0] == "|  | a\\|b |"
