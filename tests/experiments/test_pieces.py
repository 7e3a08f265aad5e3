"""Measurements that are not rankings: curves of hashes, examples, the index; with quick models."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import examples, hash_curve, hashing, qualitative, runtime, unwarping
from experiments.find_data import find_data
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.plan import View
from experiments.result_cells import ResultCells
from experiments.variants import variant_fit
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.candidates.bucket_tables import BucketTables
from neuroseqret.candidates.codes import pack_bits
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
        model = SelfAttention("paper")
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


def test_every_way_has_a_name_and_every_hash_can_be_made():
    assert set(hashing.NAMES) == set(hash_curve.WAYS)
    for make in hash_curve.HASHES.values():
        assert make("audio").bits == make("no set of the paper's").bits == hash_curve.BITS


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
    for row in range(20):
        found = hash_curve.in_buckets(codes, codes[row], hash_curve.bucket_masks(length))
        margins = np.ones(hash_curve.BITS, np.float32)
        np.testing.assert_array_equal(found, np.sort(tables.candidates(codes[row], margins)))


def test_with_all_bits_a_bucket_holds_equal_codes():
    codes = pack_bits(np.random.default_rng(0).random((50, hash_curve.BITS)) < 0.5)
    codes[7] = codes[3]
    assert hash_curve.in_buckets(codes, codes[3], hash_curve.bucket_masks(hash_curve.BITS)).tolist() == [3, 7]


def test_the_pair_for_unwarping_is_a_typical_query_and_a_relevant_sequence(lab):
    fit = variant_fit("first", "paper")
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
    assert exhaustive == [{"compared": 1.0, "nDCG@10": pytest.approx(exhaustive[0]["nDCG@10"])}]
    assert exhaustive[0]["nDCG@10"] > 0.95
    for way in ("hyperplanes", "rotation", "multi-probe", "cells"):
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
