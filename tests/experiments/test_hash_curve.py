"""Curves of candidates against exhaustive search: their buckets, their measures, their seeds."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import (
    hash_curve,
    hashing,
)
from neuroseqret.candidates.bucket_tables import BucketTables
from neuroseqret.candidates.codes import pack_bits
from neuroseqret.candidates.hyperplanes import RandomHyperplanes
from neuroseqret.data.relevance import Relevance


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
