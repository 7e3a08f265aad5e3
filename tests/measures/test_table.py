"""The measures of reports against values worked out by hand, plain loops and ir-measures."""

from __future__ import annotations

import ir_measures
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import measures as naive
from neuroseqret.data.relevance import Relevance
from neuroseqret.measures.table import MEASURES, per_query
from neuroseqret.measures.ties import id_keys, order_keys, pair_keys


def relevance_of(truth) -> Relevance:
    truth = np.atleast_2d(np.asarray(truth, bool))
    offsets = np.concatenate([[0], np.cumsum(truth.sum(1))])
    return Relevance(offsets.astype(np.int64), np.nonzero(truth)[1].astype(np.int64), truth.shape[1])


def measure(scores, truth) -> dict[str, float]:
    """One query whose scores have no ties."""
    return {k: float(v[0]) for k, v in per_query(np.atleast_2d(np.array(scores)), relevance_of(truth)).items()}


def test_by_hand():
    found = measure([9.0, 8.0, 7.0, 6.0, 5.0], [0, 1, 0, 1, 0])  # relevant at ranks 2 and 4
    assert found["AP"] == pytest.approx((1 / 2 + 2 / 4) / 2)
    assert found["RR"] == 0.5
    ideal = 1 + 1 / np.log2(3)
    assert found["nDCG@10"] == found["nDCG@20"] == pytest.approx((1 / np.log2(3) + 1 / np.log2(5)) / ideal)
    assert found["AP@10/hits"] == pytest.approx(0.5)
    assert list(found) == list(MEASURES)


def test_all_relevant_is_perfect():
    assert set(measure(np.arange(30.0), np.ones(30)).values()) == {1.0}


def test_nothing_relevant_in_the_top():
    """25 candidates, the two relevant ones last: the measures with a cut-off see nothing."""
    found = measure(-np.arange(25.0), [0] * 23 + [1, 1])
    assert found["nDCG@10"] == found["nDCG@20"] == found["AP@10/hits"] == 0
    assert found["RR"] == pytest.approx(1 / 24)
    assert found["AP"] == pytest.approx((1 / 24 + 2 / 25) / 2)


def test_the_authors_map_ignores_what_was_missed():
    found = measure(-np.arange(40.0), [1] + [0] * 20 + [1] * 19)
    assert found["AP@10/hits"] == 1.0
    assert found["AP"] < 0.5


def test_hits_after_the_cutoff_do_not_count():
    found = measure(-np.arange(12.0), [0] * 9 + [1, 1, 0])  # ranks 10 and 11
    assert found["AP@10/hits"] == pytest.approx(0.1)
    assert found["nDCG@10"] == pytest.approx((1 / np.log2(11)) / (1 + 1 / np.log2(3)))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_agrees_with_loops_and_ir_measures_with_ties(data):
    queries = data.draw(st.integers(1, 4))
    candidates = data.draw(st.integers(1, 40))
    levels = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-30, 0.25, 3.0])
    scores = np.array(data.draw(st.lists(levels, min_size=queries * candidates, max_size=queries * candidates)))
    scores = scores.reshape(queries, candidates).astype(np.float32)
    truth = np.random.default_rng(data.draw(st.integers(0, 99))).random(scores.shape) < 0.3
    truth[:, 0] |= ~truth.any(1)
    query_keys = id_keys(pa.array([f"q{q}" for q in range(queries)]), seed=7)
    candidate_keys = id_keys(pa.array([f"c{c}" for c in range(candidates)]), seed=7)
    keys = order_keys(scores, query_keys, candidate_keys)
    found = per_query(keys, relevance_of(truth))

    ties = pair_keys(query_keys, candidate_keys)
    for q in range(queries):
        order = naive.ranking(scores[q].tolist(), ties[q].tolist())
        ranked, number = [bool(truth[q, c]) for c in order], int(truth[q].sum())
        assert found["AP"][q] == pytest.approx(naive.average_precision(ranked, number))
        assert found["nDCG@10"][q] == pytest.approx(naive.ndcg(ranked, number, 10))
        assert found["nDCG@20"][q] == pytest.approx(naive.ndcg(ranked, number, 20))
        assert found["RR"][q] == pytest.approx(naive.reciprocal_rank(ranked))
        assert found["AP@10/hits"][q] == pytest.approx(naive.average_precision_of_hits(ranked, 10))

    # ir-measures sorts by score and breaks ties in its own way: give it our order as scores.
    place = np.argsort(np.argsort(keys, axis=1), axis=1)
    run = {f"q{q}": {f"c{c}": float(place[q, c]) for c in range(candidates)} for q in range(queries)}
    qrels = {f"q{q}": {f"c{c}": int(truth[q, c]) for c in range(candidates)} for q in range(queries)}
    named = [ir_measures.parse_measure(name) for name in MEASURES[:4]]
    for metric in ir_measures.iter_calc(named, qrels, run):
        assert metric.value == pytest.approx(found[str(metric.measure)][int(metric.query_id[1:])], abs=1e-12)


def test_equals_ir_measures_on_a_large_ranking():
    """No ties in float32: ir-measures sees the raw scores."""
    generator = np.random.default_rng(0)
    scores = generator.permutation(3 * 5000).reshape(3, 5000).astype(np.float32) / 7
    truth = generator.random(scores.shape) < 0.01
    ids = [f"c{c}" for c in range(5000)]
    keys = order_keys(scores, id_keys(pa.array(["0", "1", "2"])), id_keys(pa.array(ids)))
    found = per_query(keys, relevance_of(truth))
    run = {str(q): dict(zip(ids, scores[q].tolist(), strict=True)) for q in range(3)}
    qrels = {str(q): {ids[c]: 1 for c in np.flatnonzero(truth[q])} for q in range(3)}
    for metric in ir_measures.iter_calc([ir_measures.parse_measure(n) for n in MEASURES[:4]], qrels, run):
        assert metric.value == pytest.approx(found[str(metric.measure)][int(metric.query_id)], abs=1e-12)
