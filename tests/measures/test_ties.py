"""Equal scores: nobody is favoured, and the order depends on seed and ids alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from naive import measures as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures.table import per_query
from neuroseqret.measures.ties import id_keys, order_keys


def test_ties_favour_nobody():
    """A method that scores everything alike gets the mean AP of random orders, wherever the relevant rows are."""
    queries, candidates = 3000, 12
    keys = order_keys(
        np.zeros((queries, candidates), np.float32),
        id_keys(pa.array([str(q) for q in range(queries)])),
        id_keys(pa.array([str(c) for c in range(candidates)])),
    )
    generator = np.random.default_rng(0)
    chance = np.mean(
        [naive.average_precision(generator.permutation([1] * 3 + [0] * 9).tolist(), 3) for _ in range(3000)]
    )
    for first in (0, 4, 9):  # three relevant rows at the beginning, in the middle, at the end
        rows = np.tile(np.arange(first, first + 3), queries)
        truth = Relevance(3 * np.arange(queries + 1), rows, candidates)
        assert per_query(keys, truth)["AP"].mean() == pytest.approx(chance, abs=0.015)


def test_tie_order_depends_on_seed_query_and_candidate_alone():
    ids = pa.array(["a", "b", "c", "d", "e", "f", "g", "h"])
    zeros = np.zeros((2, 8), np.float32)
    queries = id_keys(pa.array(["x", "y"]), seed=1)
    first = order_keys(zeros, queries, id_keys(ids, seed=1))
    turned = order_keys(zeros, queries, id_keys(ids.take(pa.array(range(7, -1, -1))), seed=1))
    assert (first == turned[:, ::-1]).all()
    assert (np.argsort(first[0]) != np.argsort(first[1])).any()
    other = order_keys(zeros, id_keys(pa.array(["x", "y"]), seed=2), id_keys(ids, seed=2))
    assert (np.argsort(first[0]) != np.argsort(other[0])).any()
    lists = order_keys(zeros, queries, np.stack([id_keys(ids, seed=1)] * 2))
    assert (lists == first).all()
