"""What the page says about failed and disturbed runs."""

from __future__ import annotations

from experiments import (
    troubles,
)
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from fake_cells import piece, put, ranking


def test_a_failed_cell_says_why_below_the_tables(by_hand):
    assert troubles.failures(by_hand) == "Failed:\n\n- gru on toy (1 cell): did not learn"
    assert troubles.report(by_hand).startswith("### Failed and disturbed runs\n\nFailed:")


def test_failed_pieces_are_told_too(tmp_path):
    cells = ResultCells(tmp_path)
    piece(cells, "hashing", Fit(data="toy", method="self"), "paper", {"error": "broke"}, way="paper")
    piece(cells, "runtime", Fit(data="toy", method="self"), "index", {"error": "no room"})
    assert troubles.failures(Measured(cells)).endswith(
        "- hashing (paper) on toy (1 cell): broke\n- runtime on toy (1 cell): no room"
    )


def test_nothing_is_told_where_all_is_well(measured):
    assert troubles.report(measured) == ""


def test_fits_that_other_work_disturbed_are_named(tmp_path):
    cells = ResultCells(tmp_path)
    for method, cpu in (("gru", 110.0), ("thp", 60.0)):
        spent = {"fit_seconds": 120.0, "fit_cpu_seconds": cpu}
        put(cells, Fit(data="toy", method=method), View(), ranking([0.1] * 9) | spent)
    assert troubles.disturbed(Measured(cells)).endswith("disadvantage: thp on toy (corpus seen, seed 0: 50 %).")


def test_a_second_stage_is_disturbed_by_its_own_budget(tmp_path):
    cells = ResultCells(tmp_path)
    for seed, first, both in ((0, 75.0, 125.0), (1, 75.0, 133.0)):  # the second stage has 60 s
        for method, wall, cpu in (("self", first, first), ("cross", both, first + 29.0)):
            spent = {"fit_seconds": wall, "fit_cpu_seconds": cpu}
            put(cells, Fit(data="toy", method=method, seed=seed), View(), ranking([0.1] * 9) | spent)
    found = troubles.disturbed(Measured(cells))
    assert found.endswith("disadvantage: cross (default) on toy (corpus seen, seed 1: 50 %).")
