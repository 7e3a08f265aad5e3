"""HashCrossAttention with both presets: scores, embeddings, folders."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from naive import models as naive
from naive.cross import mark_divergence, memory_attention, mixed_embedding
from naive.cross_data import QUICK, awkward, first_stage, small_set
from neuroseqret.data.batching import pad
from neuroseqret.index import Index
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.cross.cross_scorer import CrossScorer
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.processes.heads import NextEvent

PRESETS = ["default", "paper", "paper-literal"]
READINGS = PRESETS[1:]


@cache
def fitted(preset: str) -> HashCrossAttention:
    queries, corpus = small_set()
    return HashCrossAttention(preset, first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)


@pytest.mark.parametrize("preset", PRESETS)
def test_embeddings_are_unit_rows_that_do_not_depend_on_company(preset: str) -> None:
    _, corpus = small_set()
    model = fitted(preset)
    whole = model.embed(corpus)
    assert whole.shape == (100, model.dimension)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(model.embed(corpus[7]), whole[7:8], atol=1e-5)
    assert np.isfinite(model.embed(awkward(), "query", unknown_marks="keep")).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_scores_do_not_depend_on_company_and_are_finite(preset: str) -> None:
    queries, corpus = small_set()
    model = fitted(preset)
    whole = model.score(queries[:3], corpus)
    scale = np.abs(whole).max()
    np.testing.assert_allclose(model.score(queries[1], corpus[40:60]), whole[1, 40:60], atol=1e-5 * scale)
    assert np.isfinite(model.score(awkward(), awkward()[:5], unknown_marks="keep")).all()


@pytest.mark.parametrize("preset", PRESETS)
def test_saved_and_loaded_are_bit_equal(preset: str, tmp_path: Path) -> None:
    queries, corpus = small_set()
    model = fitted(preset)
    again = HashCrossAttention.load(model.save(tmp_path / "model"))
    np.testing.assert_array_equal(again.score(queries[:3], corpus), model.score(queries[:3], corpus))
    np.testing.assert_array_equal(again.embed(corpus), model.embed(corpus))


def test_default_attends_to_the_memory_and_corrects_as_the_loops_do() -> None:
    queries, corpus = small_set()
    model = HashCrossAttention.from_state(fitted("default").to_state())  # a copy: its strengths are changed below
    memory = model.correction.memory
    v_q, v_c = first_stage().embed(queries[:2], "query"), first_stage().embed(corpus[:3])
    attentions = []
    for sequences, vectors in ((queries[:2], v_q), (corpus[:3], v_c)):
        gains = memory.tables.gains(sequences)
        slow = [memory_attention(memory.weights, v, memory.centroids, gains[:, k]) for k, v in enumerate(vectors)]
        np.testing.assert_allclose(memory.attend(sequences, vectors), slow, rtol=1e-3, atol=1e-5)
        attentions.append(np.array(slow))
    a_q, a_c = attentions
    both = CrossAttention(first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0), model
    for part in both:
        part.correction.strength = 0.3
    both[0].correction.event_strength = 0.0  # the agreement of events has a test of its own
    model.correction.embedding_strength = 0.7
    agreed, diverged = (part.score(queries[:2], corpus[:3]) for part in both)
    for q in range(2):
        for c in range(3):
            kappa = float(v_q[q] @ v_c[c])
            spread = 0.95 * a_q[q] + 0.05 / len(a_q[q])
            assert agreed[q, c] == pytest.approx(kappa + 0.3 * sum(a_q[q] * a_c[c]), abs=1e-4)
            assert diverged[q, c] == pytest.approx(kappa - 0.3 * mark_divergence(a_c[c], spread), abs=1e-3)
    for c, found in enumerate(model.embed(corpus[:3])):
        np.testing.assert_allclose(found, mixed_embedding(v_c[c], a_c[c], memory.centroids, 0.7), atol=1e-4)


@pytest.mark.parametrize("reading", READINGS)
def test_paper_score_is_the_sum_or_mean_of_divergences_and_sim(reading: str) -> None:
    queries, corpus = small_set()
    model = fitted(reading).correction.scorer
    assert model is not None
    with torch.no_grad():
        pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[:2]))
        found = model.divergence(pairs)[0]
        candidate: NextEvent = model.process.heads(pairs.states[0, 1, 1:])
        query: NextEvent = model.process.heads(pairs.query_states[0, 1:])
        total = 0.0
        for c in range(int(corpus.lengths[1])):
            for q in range(int(queries.lengths[0])):
                s1, s2 = float(candidate.sigma[c]), float(query.sigma[q])
                shift = float(candidate.mu[c] - query.mu[q])
                total += np.log(s2 / s1) + (s1**2 + shift**2) / (2 * s2**2) - 0.5
                total += mark_divergence(candidate.log_marks[c].exp().tolist(), query.log_marks[q].exp().tolist())
    if reading == "paper":
        total /= int(corpus.lengths[1]) * int(queries.lengths[0])
    assert float(found[1]) == pytest.approx(total, rel=1e-3, abs=1e-2 if reading == "paper-literal" else 1e-4)
    assert_scores_are(model, -found.numpy(), fitted(reading).score(queries[:1], corpus[:2])[0])


@pytest.mark.parametrize("reading", READINGS)
def test_paper_kernel_is_the_product_of_fisher_vectors_and_sim_is_taken_off(reading: str) -> None:
    queries, corpus = small_set()
    whole = CrossAttention(reading, first_stage=first_stage(), **QUICK).fit(queries, corpus, seed=0)
    model = whole.correction.scorer
    assert model is not None
    with torch.no_grad():
        pairs = model.pairs(model.unwarped(pad(queries[:1])), pad(corpus[:2]))
        of_query = model.information.whiten(model.gradients(pairs.query_inputs, pairs.query_states))
        of_corpus = model.information.whiten(model.gradients(pairs.inputs, pairs.states[0]))
    assert_scores_are(model, (of_corpus @ of_query[0]).numpy(), whole.score(queries[:1], corpus[:2])[0])


def assert_scores_are(model: CrossScorer, own: np.ndarray, found: np.ndarray) -> None:
    """The first query's scores of the first two candidates: own part - gamma (Delta_t + Delta_x) on U(times)."""
    queries, corpus = small_set()
    with torch.no_grad():
        asked = model.unwarped(pad(queries[:1]))
    for c, candidate in enumerate(pad(corpus[k : k + 1]) for k in range(2)):
        sides = [
            part for b in (asked, candidate) for part in (b.times[0].tolist(), b.marks[0].tolist(), float(b.spans[0]))
        ]
        fair = model.settings.form == "horizon"
        distance = sum(naive.deltas(*sides, normalised=fair, horizon=model.horizon if fair else None))
        expected = own[c] - model.settings.gamma * distance
        assert found[c] == pytest.approx(expected, rel=1e-4, abs=1e-4 if fair else 1e-2)


def test_own_embeddings_find_the_candidates_and_the_divergence_reranks_them() -> None:
    queries, corpus = small_set()
    model, depth = fitted("paper"), 10
    cosines = model.embed(queries[:3], "query") @ model.embed(corpus).T
    found, own = model.rerank(queries[:3], corpus, depth=depth), model.score(queries[:3], corpus)
    for q in range(3):
        best = set(np.argsort(-cosines[q], kind="stable")[:depth])
        order = np.argsort(-found[q], kind="stable")[:depth]
        assert set(order) == best
        assert (np.diff(own[q, order]) <= 1e-6).all()
    literal = fitted("paper-literal")  # the first stage finds its candidates
    first = first_stage().score(queries[:3], corpus)
    np.testing.assert_array_equal(literal.rerank(queries[:3], corpus), literal.rerank(queries[:3], corpus, first))


def test_an_index_reranks_what_lies_in_its_own_buckets(tmp_path: Path) -> None:
    queries, corpus = small_set()
    model = fitted("paper")
    buckets = {"candidates": "buckets", "hash": "network", "hash_preset": "paper"}
    index = Index.create(model, tmp_path / "index", corpus, **buckets)
    hits = index.search(queries[0], k=10)
    own = dict(zip(corpus.ids.to_pylist(), model.score(queries[0], corpus).tolist(), strict=True))
    assert len(hits)
    assert [hit.score for hit in hits] == pytest.approx([own[hit.id] for hit in hits], rel=1e-4, abs=1e-5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
