"""Looks at the models of preset `paper`: Algorithm 1, the ablation of CrossAttn, what is inside, learning curves."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import (
    algorithm,
    algorithm_run,
    cross_ablation,
    data_statistics,
    diagnosis,
    hash_curve,
    learning_curves,
)
from experiments.find_data import find_data
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from naive import hashing as naive
from neuroseqret import methods
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.data.relevance import Relevance


@pytest.fixture(scope="module")
def models(data, tmp_path_factory):
    """A lab whose three models of preset `paper` are small and took two steps."""
    place, kept = tmp_path_factory.mktemp("paper"), {}
    few = {"steps": 2, "evaluations": 1}

    def quick(self, fit):
        if fit.method not in kept:
            if fit.method == "self":
                settings = {"encoder": {"width": 8}, "batch": {"size": 4, "negatives": 8}, "warm_up": few, "joint": few}
            else:
                small = {"width": 8, "queries": 2, "negatives": 8, "loop": few}
                settings = {"first_stage": quick(self, fit.model_copy(update={"method": "self"}))[0], "process": small}
            task = self.task(fit, View())
            model = methods.make(fit.method, "paper", **settings)
            kept[fit.method] = model.fit(task.training_queries, task.training_corpus, task.training_relevance, seed=0)
        return kept[fit.method], {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lab, "fitted", quick)
        folders = find_data([data / "first"])
        yield Lab(folders, ResultCells(place / "cells"), place / "models", max_seconds=0.2, max_queries=6)


def test_algorithm_1_is_measured_once_and_counts_what_is_not_found(models, monkeypatch):
    monkeypatch.setattr(algorithm_run, "LENGTHS", (2, 6))
    monkeypatch.setattr(algorithm, "WAYS", ("hyperplanes", "paper"))
    monkeypatch.setattr(algorithm, "OWN_WAYS", ("hyperplanes",))
    algorithm.measure(models)
    cells = {name: result for name, config, result in models.cells.all() if config.get("experiment") == "algorithm"}
    assert len(cells) == 5
    assert not [result for result in cells.values() if "error" in result]
    (whole,) = cells["first/algorithm/self-exhaustive"]["points"]
    assert whole["compared"] == 1
    few, fewer = cells["first/algorithm/self-hyperplanes"]["points"]
    assert 1 > few["compared"] > fewer["compared"]
    assert whole["AP buckets"] >= few["AP buckets"] >= fewer["AP buckets"]
    models.say = pytest.fail  # a second run has nothing to say
    algorithm.measure(models)
    assert "own embedding" in algorithm.report(Measured(models.cells))


def test_the_candidates_are_those_of_the_naive_tables_and_the_best_of_them_are_reranked():
    rng = np.random.default_rng(0)
    corpus, queries = (rng.normal(size=(n, 6)).astype(np.float32) for n in (200, 3))
    first, second = queries @ corpus.T, rng.random((3, 200)).astype(np.float32)
    truth = Relevance(np.array([0, 4, 8, 12]), np.sort(rng.permutation(200)[:12]), 200)
    hashed = RandomHyperplanes(16).fit(corpus)
    asked = []

    def score(query, rows):
        asked.append((query, set(rows)))
        return second[query, rows]

    order = algorithm_run.Reranked.of(score, 3, 200)
    points = algorithm_run.curve(hashed, corpus, queries, first, {"cross": order}, truth)
    chosen = next(one for one in points if one["L"] == 4)
    codes, of_queries = hashed.encode(corpus), hashed.encode(queries)
    positions = hashed.table_positions(hash_curve.TABLES)[:, :4]
    values = {"AP buckets": [], "AP cross": []}
    compared = 0
    for query in range(3):
        buckets = naive.tables(codes, positions, 16)
        found = sorted(
            {
                row
                for one, table in zip(buckets, positions, strict=True)
                for row in one.get(naive.bucket(of_queries[query], table, 16), [])
            }
        )
        compared += len(found)
        by_first = sorted(found, key=lambda row: -first[query, row])
        head, rest = by_first[: algorithm_run.DEPTH], by_first[algorithm_run.DEPTH :]
        reranked = sorted(head, key=lambda row: -second[query, row]) + rest
        relevant = set(truth.of(query))
        for name, rows in (("AP buckets", by_first), ("AP cross", reranked)):
            hits = [rank for rank, row in enumerate(rows, 1) if row in relevant]
            values[name].append(sum((k + 1) / rank for k, rank in enumerate(hits)) / len(relevant))
    assert chosen["compared"] == pytest.approx(compared / 600, abs=1e-6)
    for name in values:
        assert chosen[name] == pytest.approx(np.mean(values[name]), abs=1e-6)
    pairs = [(query, row) for query, rows in asked for row in rows]
    assert len(pairs) == len(set(pairs))  # no pair is scored twice


def test_the_scores_of_the_ablation_add_up_to_that_of_the_model(models):
    fit = Fit(data="first", method="cross", preset="paper")
    model, _ = models.fitted(fit)
    task = models.task(fit, View(protocol="sampled"))
    query, shown = task.queries[:1], task.corpus[task.lists.of(0)]
    kappa, of_times, of_marks = cross_ablation.terms(model.correction.scorer, query, shown)
    whole = kappa - model.settings.process.gamma * (of_times + of_marks)
    np.testing.assert_allclose(whole, model.score(query, shown)[0], atol=1e-5)
    assert np.abs(kappa).max() <= 1 + 1e-5
    assert min(of_times.min(), of_marks.min()) >= 0


def test_the_ablation_of_cross_attention_is_measured_once_and_reported(models):
    models.say = lambda line: None
    cross_ablation.measure(models)
    found = cross_ablation.by_set(Measured(models.cells))
    assert set(found["first"]) == set(cross_ablation.SCORES)
    assert "without U" in cross_ablation.report(Measured(models.cells))


# ---------------------------------------------------------------- the data, and a look inside


def test_the_table_of_the_data_counts(models):
    models.say = lambda line: None
    data_statistics.measure(models)
    (found,) = [result for _, config, result in models.cells.all() if config.get("experiment") == "data"]
    task = models.task(Fit(data="first", method="random"), View())
    relevant = [len(task.relevance.of(query)) for query in range(len(task.queries))]
    assert found["sequences"] == len(task.corpus)
    assert found["relevant_share"] == pytest.approx(np.mean(relevant) / len(task.corpus), abs=1e-6)
    assert found["relevant_share_of_lists"] >= found["relevant_share"]
    assert "| relevant to a test query |" in data_statistics.report(Measured(models.cells))


def test_a_look_inside_is_measured_once_and_its_parts_belong_together(models):
    diagnosis.measure(models)
    found = diagnosis.looks(Measured(models.cells))["first"]
    assert set(found) == set(diagnosis.ROWS)
    assert all(0 <= found[name] <= 100 for name in ("train", "validation", "test", "kernel", "similarity"))
    assert found["kernel_spread"] > found["similarity_spread"] > 0
    models.say = pytest.fail  # a second run has nothing to say
    diagnosis.measure(models)
    assert "γ Sim" in diagnosis.report(Measured(models.cells))


def test_training_has_converged_if_it_ended_before_its_budget():
    def ended(seconds, second=False):
        return learning_curves.converged(
            {"curve": {"points": [[1.0, 0.5, 0.2], [seconds, 0.4, 0.3]]}, "max_seconds": 100.0, "second": second}
        )

    assert ended(70)
    assert not ended(85)
    assert ended(45, second=True)
    assert not ended(50, second=True)


def test_a_long_run_is_measured_once_and_told_beside_the_usual_one(models, monkeypatch):
    monkeypatch.setattr(learning_curves, "LONG_DATA", ("first", "absent"))
    monkeypatch.setattr(learning_curves, "LONG", 0.3)
    monkeypatch.setattr(models, "say", lambda line: None)
    learning_curves.measure(models)
    monkeypatch.setattr(models, "say", pytest.fail)
    learning_curves.measure(models)
    measured = Measured(models.cells)
    longer = learning_curves.long_runs(measured)
    assert list(longer) == ["first"]
    assert longer["first"]["curve"]["points"]
    said, table = learning_curves.more_time(measured, longer)
    assert "within 0.3 s" in said
    assert f"| {100 * longer['first']['measures']['AP']:.1f} |" in table
    assert learning_curves.more_time(measured, {}) == []
