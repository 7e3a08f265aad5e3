"""Measurements that are no rankings: curves of hashes, examples, the index; quick models stand for trained ones."""

from __future__ import annotations

import numpy as np
import pytest

from neuroseqret.baselines.histogram import Histogram
from neuroseqret.experiments import hash_curve, hashing, qualitative, runtime, unwarping
from neuroseqret.experiments.cells import Cells
from neuroseqret.experiments.lab import Lab, find_data
from neuroseqret.experiments.measured import Measured
from neuroseqret.models.self_attention import SelfAttention
from neuroseqret.relevance import Relevance
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
    return Lab(find_data([data / "first"]), Cells(tmp_path / "cells"), tmp_path / "models", max_queries=10)


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
        assert make().bits == hash_curve.BITS


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
    exhaustive = hash_curve.curve("exhaustive", corpus, queries, truth)
    assert exhaustive == [{"compared": 1.0, "nDCG@10": pytest.approx(exhaustive[0]["nDCG@10"])}]
    assert exhaustive[0]["nDCG@10"] > 0.95
    for way in ("hyperplanes", "rotation", "multi-probe", "cells"):
        points = hash_curve.curve(way, corpus, queries, truth)
        compared = [point["compared"] for point in points]
        assert compared == sorted(compared, reverse=True)
        assert min(compared) < 0.3
        assert points[0]["nDCG@10"] == pytest.approx(exhaustive[0]["nDCG@10"], abs=0.02)


def test_ndcg_counts_what_was_not_found_as_not_relevant():
    truth = Relevance(np.array([0, 2, 4]), np.array([0, 1, 2, 3]), 20)
    ideal = 1 + 1 / np.log2(3)
    rankings = [np.array([0, 9, 1]), np.array([], int)]
    assert hash_curve.ndcg(rankings, truth) == pytest.approx((1 + 1 / np.log2(4)) / ideal / 2)
