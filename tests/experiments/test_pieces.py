"""Measurements that are not rankings: curves of hashes, examples, the index; with quick models."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import (
    algorithm,
    algorithm_run,
    cross_ablation,
    data_statistics,
    diagnosis,
    examples,
    feedback,
    hash_curve,
    hashing,
    learning_curves,
    qualitative,
    runtime,
    unwarping,
)
from experiments.find_data import find_data
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.plan import Fit, View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit
from naive import hashing as naive
from neuroseqret import methods
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.candidates.bucket_tables import BucketTables
from neuroseqret.candidates.codes import pack_bits
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.data.relevance import Relevance
from neuroseqret.models.self_attention.model import SelfAttention
from simulated import simulate


@pytest.fixture
def lab(data, tmp_path, monkeypatch):
    """A lab whose SelfAttention is a histogram, or untrained where U is asked for."""
    queries, corpus = simulate()

    def quick(self, fit):
        if not fit.variant and fit.preset == "default":
            return Histogram().fit(queries, corpus), {}
        model = SelfAttention("paper-literal")
        model.scale_on(corpus)
        model._build()
        model.network.eval()
        return model, {}

    monkeypatch.setattr(Lab, "fitted", quick)
    monkeypatch.setattr(runtime.accuracy, "measure", lambda lab: None)
    monkeypatch.setattr(hashing, "WAYS", ("exhaustive", "hyperplanes", "rotation", "multi-probe", "cells"))
    return Lab(find_data([data / "first"]), ResultCells(tmp_path / "cells"), tmp_path / "models", max_queries=10)


@pytest.mark.parametrize("part", [hashing, qualitative, runtime, unwarping])
def test_measured_once_and_reported(lab, part):
    part.measure(lab)
    kept = list(lab.cells.all())
    assert kept
    assert not [result for _, _, result in kept if "error" in result]
    lab.say = pytest.fail  # a second run has nothing to say
    part.measure(lab)
    assert "first" in part.report(Measured(lab.cells))


def test_judges_are_simulated_once_and_reported(lab, monkeypatch):
    monkeypatch.setattr(feedback, "DATA", ("first",))
    monkeypatch.setattr(feedback, "JUDGED", (0, 1))
    monkeypatch.setattr(feedback, "LEARNERS", ("histogram-metric",))
    monkeypatch.setattr(feedback, "MOVED", ("histogram",))
    lab.seeds, lab.max_seconds = 1, 0.5
    feedback.measure(lab)
    kept = {name.rsplit("/", 1)[1]: result for name, _, result in lab.cells.all()}
    learned = [f"learned-histogram-metric-{way}-seed0" for way in ("0-0", "1-0", "1-10")]
    assert sorted(kept) == ["at-once-histogram", *learned]
    assert kept[learned[0]]["judgements"] == 0 < kept[learned[1]]["judgements"] == kept[learned[2]]["judgements"]
    right = kept["at-once-histogram"]["0"]
    assert right["towards"] > right["plain"]
    lab.say = pytest.fail
    feedback.measure(lab)
    assert "| first | `histogram-metric` |" in feedback.report(Measured(lab.cells))


def test_every_way_has_a_name_and_every_hash_can_be_made():
    assert set(hashing.NAMES) == set(hash_curve.WAYS)
    for way, make in hash_curve.HASHES.items():
        bits = hash_curve.TABLES * hash_curve.LEVELS if way == "trees" else hash_curve.BITS
        assert make("audio").bits == make("no set of the paper's").bits == bits


def test_the_papers_hash_has_its_weights_where_the_paper_gives_them():
    assert hash_curve.HASHES["paper"]("audio").weights[:3] == pytest.approx((0.4, 0.3, 0.3))
    assert hash_curve.HASHES["paper-without-saturation"]("audio").weights[:3] == pytest.approx((4 / 7, 0, 3 / 7))
    assert hash_curve.HASHES["paper-without-evenness"]("health").weights[:3] == pytest.approx((0, 0.5, 0.5))
    assert hash_curve.HASHES["paper"]("soccer").weights[:3] == pytest.approx((1 / 3, 1 / 3, 1 / 3))


@pytest.mark.parametrize("length", [1, 6, 20])
def test_buckets_are_those_of_the_tables(length):
    rng = np.random.default_rng(1)
    bits = rng.random((300, hash_curve.BITS)) < 0.15  # many equal bits, so that long buckets hold something
    codes = pack_bits(bits)
    tables = BucketTables.build(codes, hash_curve.BITS, hash_curve.TABLES, length)
    (masks,) = hash_curve.bucket_masks(RandomHyperplanes(hash_curve.BITS), [length])
    for row in range(20):
        found = hash_curve.in_buckets(codes, codes[row], masks)
        margins = np.ones(hash_curve.BITS, np.float32)
        np.testing.assert_array_equal(found, np.sort(tables.candidates(codes[row], margins)))


def test_with_all_bits_a_bucket_holds_equal_codes():
    codes = pack_bits(np.random.default_rng(0).random((50, hash_curve.BITS)) < 0.5)
    codes[7] = codes[3]
    (masks,) = hash_curve.bucket_masks(RandomHyperplanes(hash_curve.BITS), [hash_curve.BITS])
    assert hash_curve.in_buckets(codes, codes[3], masks).tolist() == [3, 7]


def test_the_buckets_of_a_tree_are_its_first_levels():
    rows = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    hashed = hash_curve.HASHES["trees"]("toy").fit(rows)
    codes, bits = hashed.encode(rows), hashed.margins(rows) > 0
    every = list(hash_curve.bucket_masks(hashed))
    assert len(every) == len([length for length in hash_curve.LENGTHS if length <= hash_curve.LEVELS])
    by_tree = bits.reshape(200, hash_curve.TABLES, hash_curve.LEVELS)[:, :, :5]
    shared = (by_tree == by_tree[3]).all(axis=2).any(axis=1)
    assert hash_curve.in_buckets(codes, codes[3], every[4]).tolist() == np.flatnonzero(shared).tolist()
    assert 1 < shared.sum() < 150


def test_the_pair_for_unwarping_is_a_typical_query_and_a_relevant_sequence(lab):
    fit = variant_fit("first", "paper-literal")
    task = lab.task(fit, View())
    look = examples.unwarped_pair(lab.fitted(fit)[0], task)
    row = task.queries.ids.tolist().index(look["query"]["id"])
    assert task.queries.lengths[row] == np.sort(task.queries.lengths)[len(task.queries) // 2]
    relevant = task.relevance.of(row)
    ids = task.corpus.ids.tolist()
    assert look["hit"]["id"] in [ids[place] for place in relevant]
    nearest = np.abs(task.corpus.lengths[relevant] - task.queries.lengths[row]).min()
    assert abs(len(look["hit"]["times"]) - len(look["query"]["times"])) == nearest


def test_other_methods_alone_measure_nothing(lab):
    lab.methods = frozenset({"random"})
    for part in (hashing, qualitative, runtime, unwarping):
        part.measure(lab)
    assert not list(lab.cells.all())


def test_every_curve_begins_near_exhaustive_search_and_compares_less_and_less():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(20, 16))
    labels = np.repeat(np.arange(20), 30)
    made = centres[np.concatenate([labels, np.arange(20)])] + 0.3 * rng.normal(size=(620, 16))
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    corpus, queries = unit[:600], unit[600:]
    truth = Relevance(np.arange(21) * 30, np.arange(600), 600)
    exhaustive = hash_curve.curve("exhaustive", "toy", corpus, queries, truth)
    assert exhaustive == [{"compared": 1.0, "nDCG@10": pytest.approx(exhaustive[0]["nDCG@10"]), "recall@10": 1.0}]
    assert exhaustive[0]["nDCG@10"] > 0.95
    for way in ("hyperplanes", "rotation", "trees", "multi-probe", "cells"):
        points = hash_curve.curve(way, "toy", corpus, queries, truth)
        compared = [point["compared"] for point in points]
        assert compared == sorted(compared, reverse=True)
        assert min(compared) < 0.3
        assert points[0]["nDCG@10"] == pytest.approx(exhaustive[0]["nDCG@10"], abs=0.02)


def test_ndcg_counts_what_was_not_found_as_not_relevant():
    truth = Relevance(np.array([0, 2, 4]), np.array([0, 1, 2, 3]), 20)
    ideal = 1 + 1 / np.log2(3)
    rankings = [np.array([0, 9, 1]), np.array([], int)]
    assert hash_curve.ndcg(rankings, truth) == pytest.approx((1 + 1 / np.log2(4)) / ideal / 2)


def test_a_curve_of_several_seeds_is_their_mean(monkeypatch):
    rng = np.random.default_rng(0)
    made = rng.normal(size=(320, 8))
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    corpus, queries = unit[:300], unit[300:]
    truth = Relevance(np.arange(21) * 15, np.arange(300), 300)

    def points(seeds):
        monkeypatch.setattr(hash_curve, "SEEDS", {"hyperplanes": seeds})
        return hash_curve.curve("hyperplanes", "toy", corpus, queries, truth)

    class Second(RandomHyperplanes):
        def fit(self, embeddings, *, seed=0):
            return super().fit(embeddings, seed=seed + 1)

    both, first = points(2), points(1)
    monkeypatch.setitem(hash_curve.HASHES, "hyperplanes", lambda data: Second(hash_curve.BITS))
    second = points(1)
    assert len(both) == min(len(first), len(second))
    for mean, one, other in zip(both, first, second, strict=False):
        for name in ("compared", "nDCG@10", "recall@10"):
            assert mean[name] == pytest.approx((one[name] + other[name]) / 2, abs=2e-6)
    assert first[3] != second[3]


def test_recall_is_of_the_ten_best_of_exhaustive_search(monkeypatch):
    rng = np.random.default_rng(1)
    made = rng.normal(size=(220, 6))
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    corpus, queries = unit[:200], unit[200:]
    monkeypatch.setattr(hash_curve, "SEEDS", {})
    truth = Relevance(np.arange(21) * 10, np.arange(200), 200)
    found = hash_curve.curve("trees", "toy", corpus, queries, truth)[5]["recall@10"]
    hashed = hash_curve.HASHES["trees"]("toy").fit(corpus)
    bits, asked = hashed.margins(corpus) > 0, hashed.margins(queries) > 0
    kept = []
    for query, code in zip(queries, asked, strict=True):
        met = (bits == code).reshape(200, hash_curve.TABLES, -1)[:, :, :6].all(axis=2).any(axis=1)
        kept.append(met[np.argsort(-(corpus @ query))[:10]].mean())
    assert found == pytest.approx(np.mean(kept), abs=1e-6)
    assert 0.3 < found < 1


# ---------------------------------------------------------------- Algorithm 1 and the ablation of CrossAttn


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
