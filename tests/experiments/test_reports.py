"""Tables from cells with numbers that were worked out by hand, and every report on made-up cells."""

from __future__ import annotations

import re

import numpy as np
import pytest

from experiments import (
    ablation,
    accuracy,
    hashing,
    lengths,
    neural_process,
    queries,
    results_document,
    runtime,
    second_stages,
    standing,
    training_time,
    unwarping,
)
from experiments.markdown import MISSING, NOTHING
from experiments.measured import Measured, row_fit
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit
from fake_cells import COMMON, piece, put, ranking
from neuroseqret.errors import UserError
from neuroseqret.methods import make


def cell(text: str, row: str, column: str) -> str:
    """The cell of the first table of a text that has such a row and column."""
    lines = [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    head = next(line for line in lines if column in line)
    found = next(line for line in lines[lines.index(head) :] if line[0] == row)
    return found[head.index(column)]


# ---------------------------------------------------------------- accuracy


def test_accuracy_table(by_hand):
    text = accuracy.accuracy_table(by_hand, "AP", "seen", View())
    assert cell(text, "histogram", "toy") == "40.0"
    assert cell(text, "self (default)", "toy") == "65.0 ± 7.1▲"
    assert cell(text, "cross (default)", "toy") == "**66.0**▲"
    assert cell(text, "self (paper-literal)", "toy") == "20.0▼"
    assert cell(text, "random", "toy") == "10.0"  # baselines have no marks
    assert cell(text, "gru", "toy") == "failed"
    assert "| thp |" not in text  # nobody tried it
    assert "7 of 40 runs (one per set, method and seed) are measured." in text  # 22 rows, 18 of them with 2 seeds
    unmarked = accuracy.accuracy_table(by_hand, "RR", "seen", View())
    assert cell(unmarked, "self (default)", "toy") == "65.0 ± 7.1"


def test_marks_are_corrected_over_all_methods_and_sets(tmp_path):
    rng = np.random.default_rng(0)
    base = np.clip(rng.normal(0.5, 0.05, 30), 0, 1)
    noise = rng.normal(0.008, 0.03, 30)
    cells = ResultCells(tmp_path)
    put(cells, Fit(data="a", method="histogram"), View(), ranking(base))
    put(cells, Fit(data="a", method="self"), View(), ranking(base + noise))
    alone = Measured(cells)
    pair = [(row_fit("a", ("self", "default")), row_fit("a", ("histogram", "default")))]
    p = float(alone.p_values(pair, View(), "AP")[0])
    assert 0.005 < p <= 0.05
    assert accuracy.marks(alone, "AP", "seen", View()) == {("a", ("self", "default")): "▲"}
    for method in ("random", "gru", "thp", "sahp", "rmtpp", "rank-thp", "rank-sahp", "rank-rmtpp", "mass", "udtw"):
        put(cells, Fit(data="a", method=method), View(), ranking(base + np.resize([0.01, -0.0102], 30)))
    assert accuracy.marks(Measured(cells), "AP", "seen", View()) == {}  # eleven tests now


def test_the_best_baseline_is_that_of_the_condition(by_hand):
    assert by_hand.baselines("toy", View()) == ["histogram", "random"]
    assert by_hand.baselines("toy", View(protocol="sampled")) == []


def test_cells_of_other_data_of_the_same_name_are_not_mixed(tmp_path):
    cells = ResultCells(tmp_path)
    put(cells, Fit(data="toy", method="histogram"), View(), ranking([0.4] * 30))
    other = {**Fit(data="toy", method="self").model_dump(), **View().model_dump(), **COMMON, "content": "another"}
    cells.put("toy/other", other, ranking([0.8] * 30))
    with pytest.raises(UserError, match=r"toy/other\.json: was measured on other data called 'toy'.* apart by --out"):
        Measured(cells)


def test_a_file_of_other_kind_among_the_cells_is_one_clear_line(tmp_path):
    cells = ResultCells(tmp_path)
    cells.put("strange", {}, {})
    with pytest.raises(UserError, match=r"strange\.json: is not a cell of an experiment"):
        Measured(cells)


def test_seeds_are_those_of_each_row(by_hand):
    said = results_document._seeds(by_hand)
    ones = "`random`, `self (paper-literal)`, `cross (default)` and `hash-cross (default)`"
    assert said.startswith(f"With the corpus seen, 2 for `self (default)`; 1 for {ones}; not on every set: ")
    assert "not on every set: `histogram-metric`" in said


def test_data_that_the_paper_does_not_have_get_no_empty_tables(by_hand):
    assert "beside the paper's" not in accuracy.report(by_hand)
    assert "beside the paper's" not in runtime.report(by_hand)


def test_standing_and_claims_count(by_hand):
    text = standing.report(by_hand)
    assert "The best baseline is `histogram` on toy with the corpus seen." in text
    assert "train for up to 180 s in all, `self` and the baselines for up to 120 s" in text
    assert cell(text, "self (paper-literal)", "significantly below") == "toy"
    assert cell(text, "self (paper-literal)", "significantly above") == "none"
    assert cell(text, "self (default)", "significantly above") == "toy"
    assert cell(text, "self (default)", "above the nine") == MISSING  # nobody tried them
    assert cell(text, "MAP", "sets on which a baseline is best") == "0 of 1"
    assert all(not finding.found for finding in accuracy.findings(by_hand))  # nothing by the paper's protocol


def test_it_is_told_where_a_baseline_is_best(tmp_path):
    cells, view = ResultCells(tmp_path), View(protocol="sampled")
    for data, histogram in (("a", 0.5), ("b", 0.3003), ("c", 0.2)):
        put(cells, Fit(data=data, method="histogram"), view, ranking([histogram] * 9))
        put(cells, Fit(data=data, method="self"), view, ranking([0.25] * 9))
        put(cells, Fit(data=data, method="cross"), view, ranking([0.3] * 9))
    text = standing.baselines_on_top(Measured(cells))
    assert cell(text, "RR", "sets on which a baseline is best") == "1 of 3: a (histogram +20.0)"
    assert cell(text, "RR", "ranked") == "lists as in the paper"


def test_a_difference_below_rounding_is_no_win(tmp_path):
    cells = ResultCells(tmp_path)
    for data, better in (("a", 0.3004), ("b", 0.3006), ("c", 0.2)):
        put(cells, Fit(data=data, method="self"), View(), ranking([0.3] * 9))
        put(cells, Fit(data=data, method="cross"), View(), ranking([better] * 9))
    assert Measured(cells).above(("cross", "default"), ("self", "default"), View()) == (1, 3)


def test_queries_of_different_number_are_not_compared(tmp_path):
    cells = ResultCells(tmp_path)
    put(cells, Fit(data="a", method="histogram"), View(), ranking([0.4] * 30))
    put(cells, Fit(data="a", method="self"), View(), ranking([0.8] * 20))
    assert accuracy.marks(Measured(cells), "AP", "seen", View()) == {}


# ---------------------------------------------------------------- the other tables


def test_second_stages(by_hand):
    gains, p = second_stages.compare(by_hand, "default")
    np.testing.assert_allclose(gains[0, :, 0], [6.0, 0.0], atol=1e-9)  # against self's seed 0, the only one in common
    assert (p[0, 0] <= 0.05).all()
    assert second_stages.verdict(by_hand, "default").endswith("on 1 of 1 sets (toy), and significantly below on 0.")
    assert second_stages.verdict(by_hand, "paper-literal") == "`paper-literal`: not measured yet."


def test_ablation_is_of_the_first_seed(by_hand, tmp_path):
    cells = ResultCells(tmp_path)
    put(cells, Fit(data="toy", method="self", variant="no-bank"), View(), ranking([0.55] * 60))
    text = ablation.report(Measured(cells))
    part = text[text.index("The default preset") :]
    assert cell(part, "the whole model", "toy") == "60.0"
    assert cell(part, "standard deviation over seeds", "toy") == "7.1"
    assert cell(part, "without the bank of convolutions", "toy") == "−5.0▼"
    assert cell(part, "without the bank of convolutions", "mean") == "−5.0"
    assert "with unwarping" not in part  # not measured


def test_the_neural_process_is_compared_over_the_seeds_that_both_have(tmp_path):
    cells = ResultCells(tmp_path)
    for seed, value in enumerate((0.5, 0.6, 0.9)):
        put(cells, Fit(data="toy", method="self", seed=seed, corpus="unseen"), View(), ranking([value] * 60))
    for seed in (0, 1):
        put(cells, neural_process.fit_of("toy", seed), View(), ranking([0.5] * 60))
    text = neural_process.report(Measured(cells))
    assert cell(text, "toy", "seeds") == "2"
    assert cell(text, "toy", "MAP: default") == "55.0 ± 7.1"
    assert cell(text, "toy", "neural") == "50.0 ± 0.0"
    assert cell(text, "toy", "difference") == "−5.0▼"
    assert "adds nothing significant; it takes away significantly on toy (MAP −5.0) and toy (nDCG@10 −5.0)." in text


def test_shares_of_queries():
    np.testing.assert_allclose(queries.shares(np.array([5.0, 0.05, 0.0, -0.05, -3.0])), (0.2, 0.6, 0.2))


def test_hashing_reads_curves_in_the_logarithm_of_the_share():
    points = [{"compared": 0.1, "nDCG@10": 0.8}, {"compared": 0.001, "nDCG@10": 0.4}, {"compared": 0.0, "nDCG@10": 0}]
    assert hashing.at_share(points, 0.01) == pytest.approx(0.6)
    assert hashing.at_share(points, 0.5) == pytest.approx(0.8)
    assert np.isnan(hashing.at_share(points[:1], 0.01))
    assert np.isnan(hashing.at_share([], 0.01))


def test_runtime_and_lengths(measured):
    text = runtime.report(measured)
    assert cell(text, "self (default)", "audio") == "12"
    assert cell(text, "events embedded per CPU second, self (default)", "audio") == "25,000"
    assert cell(text, "self (default), as a multiple of rank-thp", "audio") == "1.0"
    assert cell(text, "here: cross (default)", "audio") == "12 s"
    assert cell(text, "audio", "events indexed per CPU s") == "12,500"
    assert "### 10 to 50 events" in lengths.report(measured)


def test_lengths_tell_the_difference_to_whole_queries(tmp_path):
    cells = ResultCells(tmp_path)
    put(cells, Fit(data="toy", method="histogram"), View(), ranking([0.4] * 9))
    put(cells, Fit(data="toy", method="histogram"), View(queries="10-50"), ranking([0.3] * 9))
    assert cell(lengths.report(Measured(cells)), "histogram", "toy") == "**30.0** (−10.0)"


def test_losses_of_second_stages_are_told_by_measure_and_protocol(tmp_path):
    cells, view = ResultCells(tmp_path), View(protocol="sampled")
    for method, full, sampled in (("self", 0.5, 0.6), ("cross", 0.498, 0.52), ("hash-cross", 0.49, 0.6)):
        put(cells, Fit(data="toy", method=method), View(), ranking([full] * 9))
        put(cells, Fit(data="toy", method=method), view, ranking([sampled] * 9))
    text = second_stages.losses(Measured(cells), "default")
    whole, lists = text.split("| MAP | lists as in the paper")
    assert cell(whole, "RR", "cross (default) is below on") == "none"  # 0.2 points are within bounds
    assert cell(whole, "RR", "hash-cross (default) is below on") == "toy (−1.0)"
    assert lists.startswith(" | seen | toy (−8.0) | none |")


def test_the_papers_score_is_told_in_words(tmp_path):
    cells = ResultCells(tmp_path)
    for name, value in (("", 0.2), ("-kernel-only", 0.4), ("-similarity-only", 0.18)):
        put(cells, variant_fit("toy", ablation.BASE + name), View(), ranking([value] * 60))
    text = ablation.report(Measured(cells))
    assert "higher MAP than the whole score on 1 of 1 sets; the average difference is +20.0 points" in text
    assert "The similarity term alone differs from the whole score by −2.0 points" in text


def test_training_time_takes_the_usual_budget_from_accuracy_and_names_the_runner_up(tmp_path):
    cells = ResultCells(tmp_path)
    for method, usual, long in (("self", 0.5, 0.7), ("gru", 0.4, 0.6)):
        fit = Fit(data="sports", method=method, corpus="unseen")
        put(cells, fit, View(), ranking([usual] * 9))
        piece(cells, "training-time", fit, method, ranking([long] * 9, by_query=False), seconds=600.0)
    text = training_time.report(Measured(cells))
    assert cell(text, "gru", "sports, 120 s") == "40.0 (12 s)"
    assert cell(text, "gru", "sports, 600 s") == "60.0 (12 s)"
    assert "`self` differs from the best of the others by +10.0 points on sports (`gru`)" in text


@pytest.mark.parametrize("method", training_time.METHODS)
def test_the_longest_training_takes_more_steps(method):
    usual, longer = (make(method, **settings) for settings in ({}, training_time.longer(method)))
    steps = [_steps(one.settings) for one in (usual, longer)]
    assert steps[1] == training_time.TIMES * steps[0] > 0


def _steps(settings):
    loop = getattr(settings, "head", None) or getattr(settings, "loop", settings)
    return loop.steps


# ---------------------------------------------------------------- all of it


@pytest.mark.parametrize("name", results_document.EXPERIMENTS)
def test_every_report_says_so_when_nothing_was_measured(name, by_hand):
    text = results_document.EXPERIMENTS[name].report(by_hand)
    assert text.startswith("## ")
    assert not re.search(r"\bnan\b", text)
    assert NOTHING in text or MISSING in text or name == "queries"  # which by_hand has


def test_the_document_is_made_of_cells_alone_and_the_same_each_time(full, measured, tmp_path):
    results_document.write(measured, tmp_path / "a" / "results.md", tmp_path / "a" / "figures")
    text = (tmp_path / "a" / "results.md").read_text()
    assert text == results_document.text(Measured(full))
    assert "--seeds 2 --max-seconds 120 --max-queries 500" in text
    assert "Commits: 0123456789" in text
    assert "| audio | 40 | 7 | 1 | 1,234 | 40 | 7 | 1 | 1,234 |" in text
    assert not re.search(r"\bnan\b", text)
    assert "0 of 0" not in text
    assert "Not measured yet" not in text
    figures = sorted(p.name for p in (tmp_path / "a" / "figures").iterdir())
    names = ("algorithm", "hashing", "learning-curves", "qualitative", "queries", "training-time", "unwarping")
    assert figures == [f"{name}.png" for name in names]
    for name in figures:
        assert f"](figures/{name})" in text
        assert (tmp_path / "a" / "figures" / name).stat().st_size < 600_000
    unwarping.report(measured, tmp_path / "b")
    first, second = (tmp_path / place / "unwarping.png" for place in ("a/figures", "b"))
    assert first.read_bytes() == second.read_bytes()
