"""The lab: what is measured, what is not measured again, and how processes share the work."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from experiments import lab as module
from experiments import plan, training_time
from experiments.cutting import cut_queries
from experiments.find_data import find_data
from experiments.lab import Lab, Piece
from experiments.outcomes import figures, learning_curve
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit
from experiments.versions import LOOKS
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.baselines.random import Random
from neuroseqret.candidates import HashNetwork
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.evaluation.scoring import answer
from neuroseqret.methods.registry import BASELINES, MODELS
from neuroseqret.models.self_attention import SelfAttention
from simulated import simulate


@pytest.fixture
def lab(data, tmp_path):
    return Lab(find_data([data]), ResultCells(tmp_path / "cells"), tmp_path / "models", max_queries=10, max_seconds=1)


# ---------------------------------------------------------------- plan


def test_the_first_seed_of_everything_comes_before_the_second_of_anything():
    fits = list(plan.accuracy(["a", "b"], 2))
    assert [fit.seed for fit in fits] == sorted(fit.seed for fit in fits)
    assert len(set(fits)) == len(fits)
    once = 2 * 2 * (len(BASELINES) + len(plan.PRESETS) * len(MODELS))  # data sets, corpora
    assert len(fits) == 2 * once - 2 * 2 * len(plan.DETERMINISTIC)
    assert len({f"{fit.name}-{view.name}" for fit in fits for view in plan.views(fit)}) == sum(
        len(plan.views(fit)) for fit in fits
    )


def test_names_and_labels():
    fit = Fit(
        data="audio", method="self", preset="paper-literal", variant="paper-literal-no-times", seed=2, corpus="unseen"
    )
    assert fit.name == "audio/self+paper-literal+paper-literal-no-times/seed2-unseen"
    assert Fit(data="audio", method="thp").name == "audio/thp/seed0-seen"
    assert (View().name, View(protocol="sampled").name, View(queries="10-50").name) == ("full", "sampled", "full-10-50")
    assert [view.name for view in plan.views(Fit(data="a", method="mass"))] == ["full", "sampled"]
    assert [v.name for v in plan.views(Fit(data="a", method="self"))] == [
        "full",
        "sampled",
        "full-10-50",
        "full-50-100",
    ]


def test_a_whole_model_is_the_row_of_the_accuracy_table():
    assert variant_fit("a", "default") == Fit(data="a", method="self")
    assert variant_fit("a", "paper-literal") == Fit(data="a", method="self", preset="paper-literal")
    assert variant_fit("a", "paper-literal-no-times").preset == "paper-literal"


# ---------------------------------------------------------------- data


def test_cut_queries_are_runs_of_the_asked_length_and_short_ones_stay_whole():
    rng = np.random.default_rng(0)
    lists = [(np.cumsum(rng.exponential(1, n)), rng.integers(0, 3, n)) for n in (5, 40, 200, 200, 200)]
    queries = EventSequences.from_lists([(t.tolist(), m.tolist()) for t, m in lists])
    cut = cut_queries(queries, "10-50", 0)
    assert cut.lengths[0] == 5
    assert ((cut.lengths[1:] >= 10) & (cut.lengths[1:] <= 50)).all()
    for row, (_, marks) in enumerate(lists):
        mine = cut[row].marks.tolist()
        assert any(marks[i : i + len(mine)].tolist() == mine for i in range(len(marks)))
    assert cut.ids.to_pylist() == queries.ids.to_pylist()
    assert cut_queries(queries, "10-50", 0).lengths.tolist() == cut.lengths.tolist()
    assert cut_queries(queries, "whole", 0) is queries


def test_find_data_takes_folders_and_folders_of_folders(data, tmp_path):
    assert list(find_data([data])) == ["first", "second"]
    assert find_data([data / "second"]) == {"second": data / "second"}
    with pytest.raises(UserError, match="is not a data folder and holds none"):
        find_data([tmp_path])
    assert list(find_data([data, data / "first"])) == ["first", "second"]  # the same folder once more
    shutil.copytree(data / "first", tmp_path / "elsewhere" / "first")
    with pytest.raises(UserError, match="two data folders are called first"):
        find_data([data, tmp_path / "elsewhere"])
    (tmp_path / "elsewhere" / "first" / "queries.parquet").unlink()
    with pytest.raises(UserError, match=r"first: has no queries\.parquet, so there is nothing to ask"):
        find_data([tmp_path / "elsewhere"])


# ---------------------------------------------------------------- measuring


def test_a_fit_is_measured_once_and_asked_in_every_view(lab):
    fit = Fit(data="first", method="histogram")
    said = []
    lab.say = lambda line: said.append(line) if "cells in" in line else None
    lab.run([fit])
    names = [name for name, _, _ in lab.cells.all()]
    assert sorted(names) == sorted(f"{fit.name}-{view.name}" for view in plan.views(fit))
    assert len(said) == 1
    lab.run([fit])
    assert len(said) == 1
    kept = {name: result for name, _, result in lab.cells.all()}
    assert len(kept[f"{fit.name}-full"]["ten_thousandths"]["AP"]) == kept[f"{fit.name}-full"]["queries_answered"] == 10
    assert "ten_thousandths" not in kept[f"{fit.name}-sampled"]


def test_a_cut_off_run_goes_on_where_it_was(lab, monkeypatch):
    fits = [Fit(data=name, method="random", seed=seed) for seed in (0, 1) for name in ("first", "second")]
    measure = Lab._measure

    def stop_at_the_third(self, fit, wanted):
        if fit == fits[2]:
            raise KeyboardInterrupt
        return measure(self, fit, wanted)

    monkeypatch.setattr(Lab, "_measure", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        lab.run(fits)
    done = []
    monkeypatch.setattr(Lab, "_measure", lambda self, fit, wanted: done.append(fit) or measure(self, fit, wanted))
    lab.run(fits)
    assert done == fits[2:]


def test_a_view_that_is_done_is_kept_when_the_next_is_cut_off(lab, monkeypatch):
    fit = Fit(data="first", method="histogram")
    asked = []

    def cut_off_at_the_third(scores, task, what):
        asked.append(what)
        if len(asked) == 3:
            raise KeyboardInterrupt
        return answer_from(scores, task, what=what)

    answer_from = module.answer_from
    monkeypatch.setattr(module, "answer_from", cut_off_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        lab.run([fit])
    assert len(lab._missing(fit)) == len(plan.views(fit)) - 2


def test_a_bug_of_one_method_does_not_cost_the_others(lab, monkeypatch):
    def broken(self, *arguments, **options):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(Histogram, "fit", broken)
    lab.run([Fit(data="first", method="histogram"), Fit(data="first", method="random")])
    kept = {name: result for name, _, result in lab.cells.all()}
    assert kept["first/histogram/seed0-seen-full"] == {"error": "ZeroDivisionError: by zero"}
    assert "measures" in kept["first/random/seed0-seen-full"]


def test_a_changed_budget_or_version_is_measured_again_and_stale_cells_may_be_kept(lab, monkeypatch):
    fit = Fit(data="first", method="random")
    lab.run([fit])
    assert not lab._missing(fit)
    monkeypatch.setattr(Random, "version", Random.version + 1)
    assert lab._missing(fit)
    lab.cells.keep_stale = True
    assert not lab._missing(fit)
    lab.max_seconds = 2
    assert lab._missing(fit)


def test_what_another_process_is_at_is_passed_by_and_taken_up_later(lab, monkeypatch):
    fits = [Fit(data="first", method="random"), Fit(data="second", method="random")]
    claim = lab.cells.claimed(fits[0].name)
    assert claim.__enter__()
    other = Lab(lab.folders, ResultCells(lab.cells.folder), lab.models, max_queries=10, max_seconds=1)
    # The other process ends while we wait for it.
    monkeypatch.setattr(module.time, "sleep", lambda seconds: claim.__exit__(None, None, None))
    said = []
    other.say = said.append
    other.run(fits)
    assert [line.split("/")[0] for line in said] == ["second", "first"]


def test_a_method_that_cannot_answer_leaves_its_reason(lab, monkeypatch):
    def refuse(self, fit):
        raise UserError("too few events")

    with monkeypatch.context() as patch:
        patch.setattr(Lab, "fitted", refuse)
        lab.run([Fit(data="first", method="random")])
    assert [result for _, _, result in lab.cells.all()] == [{"error": "too few events"}] * 2
    lab.run([Fit(data="first", method="random")])  # tried again: what was wrong may be mended
    assert not any("error" in result for _, _, result in lab.cells.all())


def test_cells_of_a_variant_know_its_settings_and_those_of_cut_queries_the_version_of_cutting(lab, monkeypatch):
    fit, cut = variant_fit("first", "hinge-loss"), View(queries="10-50")
    before, cut_before = lab.fit_config(fit), lab.config(fit, cut)
    monkeypatch.setitem(module.VARIANTS, "hinge-loss", ("default", {"loss": {"kind": "hinge", "margin": 0.1}}))
    assert lab.fit_config(fit) != before
    monkeypatch.undo()
    assert lab.config(fit, cut) == cut_before
    assert cut_before["versions"] == {**lab.config(fit, View())["versions"], "cutting": LOOKS["cutting"]}
    monkeypatch.setitem(LOOKS, "cutting", LOOKS["cutting"] + 1)
    assert lab.config(fit, cut) != cut_before


def test_pieces_are_measured_once_and_failures_shown(lab):
    fit = Fit(data="first", method="histogram")
    config = lab.piece_config("hashing", fit, way="exhaustive")
    assert config["experiment"] == "hashing"
    assert config["versions"] == {**lab.fit_config(fit)["versions"], "hashing": LOOKS["hashing"]}
    assert lab.piece_config("hashing", fit, way="paper")["versions"]["hash"] == HashNetwork.version
    calls = []

    def fail():
        raise UserError("no embeddings")

    pieces = [
        Piece("first/hashing/a", config, lambda: calls.append(1) or {"x": 1}),
        Piece("first/hashing/b", config, fail),
    ]
    lab.run_pieces(pieces)
    lab.run_pieces(pieces)
    assert len(calls) == 1
    assert [result for _, _, result in lab.cells.all()] == [{"x": 1}, {"error": "no embeddings"}]


def test_only_what_other_work_starts_from_is_kept_and_reused(lab, monkeypatch):
    queries, corpus = simulate()
    fits = []

    def quick(self, fit):
        fits.append(fit.method)
        return Histogram().fit(queries, corpus), {"fit_seconds": 1.0}

    monkeypatch.setattr(Lab, "_fit", quick)
    for method in ("self", "self", "thp", "thp"):
        model, spent = lab.fitted(Fit(data="first", method=method))
        assert isinstance(model, Histogram)
        assert spent == {"fit_seconds": 1.0}
    assert fits == ["self", "thp", "thp"]
    for preset in ("paper", "paper", "default", "default"):
        lab.fitted(Fit(data="first", method="cross", preset=preset))
    assert fits[3:] == ["cross"] * 3


@pytest.mark.parametrize("method", module.SECOND_STAGES)
def test_sampled_lists_of_a_second_stage_are_scored_as_if_one_by_one(lab, monkeypatch, method):
    fit, view = Fit(data=lab.data[0], method=method), View(protocol="sampled")
    model, spent = lab.fitted(fit)
    model.correction.strength = 1.0  # a memory that may have found no gain is to count here
    monkeypatch.setattr(Lab, "fitted", lambda self, fit: (model, spent))
    expected = figures(answer(model, lab.task(fit, view)), by_query=False)["measures"]
    assert next(lab._measure(fit, [view]))["measures"] == pytest.approx(expected, abs=1e-6)


def test_variants_are_made_from_their_preset_with_the_papers_values_for_its_sets(lab):
    (model, budget, before), (paper, _, _) = (
        lab._untrained(variant_fit("audio", name)) for name in ("hinge-loss", "paper-literal-kernel-only")
    )
    assert (model.settings.loss.kind, model.settings.vector.markov, budget, before) == ("hinge", True, 1, {})
    assert (paper.preset, paper.settings.similarity.form) == ("paper-literal-audio", "none")


def test_training_time_is_measured_with_its_own_budget_and_settings(lab, monkeypatch):
    lab.methods = frozenset({"gru"})
    monkeypatch.setattr(training_time, "DATA", ("first",))
    monkeypatch.setattr(training_time, "SHORT", 0.5)
    monkeypatch.setattr(training_time, "LONG", 0.6)
    training_time.measure(lab)
    found = {config["seconds"]: (config, result) for _, config, result in lab.cells.all()}
    assert set(found) == {0.5, 0.6}
    assert found[0.5][0]["settings"] == {}
    assert found[0.6][0]["settings"] == training_time.longer("gru")
    for config, result in found.values():
        assert 0 < result["measures"]["AP"] <= 1
        assert config["corpus"] == "unseen"


def test_a_learning_curve_has_the_validations_of_the_last_phase_that_has_any():
    queries, corpus = simulate()
    short = {"warm_up": {"steps": 3}, "joint": {"steps": 4, "patience": None, "evaluations": 2}}
    model = SelfAttention("paper", **short).fit(queries, corpus)
    curve = learning_curve(model)["curve"]
    records = [record for record in model.log.records if record["phase"] == "joint"]
    assert curve["judged_by"] == "AP"
    assert [point[2] for point in curve["points"]] == [round(r["validation"], 4) for r in (records[1], records[3])]
    means = [np.mean([r["loss"] for r in part]) for part in (records[:2], records[2:])]
    np.testing.assert_allclose([point[1] for point in curve["points"]], means, atol=1e-4)
    assert learning_curve(Histogram().fit(queries, corpus)) == {}
