"""Every way of asking a method gives the same answers; missing and non-finite scores are errors."""

from __future__ import annotations

import numpy as np
import pytest

from naive import measures as naive
from neuroseqret.baselines.settings import NoSettings
from neuroseqret.baselines.unlearned import Unlearned
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.evaluation import scoring
from neuroseqret.evaluation.protocol import make_task
from neuroseqret.evaluation.scoring import answer
from neuroseqret.measures.ties import pair_keys
from neuroseqret.models.base import Embedder, Reranker
from neuroseqret.models.cross.hash_cross_attention import HashCrossAttention
from neuroseqret.models.self_attention.model import SelfAttention


def features(sequences: EventSequences) -> np.ndarray:
    """Coarse mark shares, so that ties are frequent."""
    row = np.repeat(np.arange(len(sequences)), sequences.lengths)
    counts = np.zeros((len(sequences), 4), np.float32)
    np.add.at(counts, (row, sequences.marks), 1)
    counts = np.round(counts / 8) + 0.1
    return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


class Shares(Unlearned):
    name = "shares"

    def __init__(self) -> None:
        super().__init__(NoSettings())


class Embedding(Shares, Embedder):
    def compute_embeddings(self, sequences, role):
        return features(sequences)


class Pairwise(Shares):
    """The same scores, one by one."""

    def compute_scores(self, queries, candidates):
        mine, theirs = features(queries), features(candidates)
        return np.array([[np.float32(a @ b) for b in theirs] for a in mine], np.float32)


@pytest.mark.parametrize("protocol", ["full", "sampled"])
def test_embedded_and_pairwise_agree_with_plain_loops(sets, protocol):
    queries, corpus = sets()
    task = make_task(queries, corpus, protocol=protocol, negatives=17)
    found = answer(Embedding(), task)
    pairwise = answer(Pairwise(), task)
    mine, theirs = features(task.queries), features(task.corpus)
    ties = pair_keys(*task.tie_keys())
    for query in range(len(task.queries)):
        listed = np.arange(len(corpus)) if task.lists is None else task.lists.of(query)
        scores = (theirs[listed] @ mine[query]).round(6)
        order = listed[naive.ranking(scores.tolist(), ties[query, listed].tolist())]
        relevant = np.isin(order, task.relevance.of(query)).tolist()
        # Equal scores differ in the last digit between the ways of computing them, so ranks may too: scores do not.
        for answers in (found, pairwise):
            assert np.allclose(answers.top_scores[query, : len(order)], theirs[order] @ mine[query], atol=1e-6)
            assert set(answers.top_rows[query, : len(order)]) == set(listed.tolist())
            assert (answers.top_rows[query, len(order) :] == -1).all()
            ranked = np.isin(answers.top_rows[query, : len(order)], task.relevance.of(query)).tolist()
            assert answers.measures["AP"][query] == pytest.approx(naive.average_precision(ranked, sum(relevant)))
            assert answers.measures["nDCG@20"][query] == pytest.approx(naive.ndcg(ranked, sum(relevant), 20))


def test_blocks_and_depth_do_not_change_the_measures(sets, monkeypatch):
    queries, corpus = sets()
    task = make_task(queries, corpus)
    whole = answer(Pairwise(), task)
    monkeypatch.setattr(scoring, "_BLOCK", 3 * len(corpus))
    monkeypatch.setattr(scoring, "_PIECE", 5)
    monkeypatch.setattr(scoring, "DEPTH", 7)
    parts = answer(Pairwise(), task)
    for measure, values in whole.measures.items():
        assert (parts.measures[measure] == values).all()
    assert parts.top_rows.shape == (12, 7)
    assert (parts.top_rows == whole.top_rows[:, :7]).all()
    pieces = answer(Embedding(), task)
    assert np.allclose(pieces.top_scores, whole.top_scores[:, :7], atol=1e-6)


def test_progress_sees_every_part(sets):
    queries, corpus = sets()
    task = make_task(queries, corpus, protocol="sampled", negatives=5)
    seen: list[tuple[str, int, int]] = []

    def progress(parts, what, total):
        parts = list(parts)
        seen.append((what, total, len(parts)))
        return parts

    answer(Pairwise(), task, progress, "mine")
    assert seen == [("mine: rank", 12, 12)]
    answer(Embedding(), task, progress, "mine")
    assert [what for what, _, _ in seen[1:]] == ["mine: embed queries", "mine: embed corpus", "mine: rank"]
    assert all(total == length for _, total, length in seen)


class Adding(Embedding):
    """An embedder whose score is not the plain dot product."""

    def compute_scores(self, queries, candidates):
        scores = super().compute_scores(queries, candidates)
        return -scores


class SecondStage(Pairwise, Reranker):
    """Reranks the whole corpus backwards, and scores lists together."""

    def rerank(self, queries, corpus, first_stage_scores=None, depth=100, *, unknown_marks="error"):
        return -self.score(queries, corpus)

    def score_listed(self, queries, corpus, listed, *, unknown_marks="error"):
        assert (listed >= 0).all()
        return np.stack([self.score(queries[q], corpus[rows]) for q, rows in enumerate(listed)])


def test_an_embedder_that_adds_to_the_product_is_asked_for_its_score(sets):
    task = make_task(*sets())
    assert np.allclose(answer(Adding(), task).top_scores[:, 0], -answer(Pairwise(), task).top_scores[:, -1], atol=1e-6)


def test_a_method_says_whether_its_score_is_the_cosine():
    assert Embedding().score_is_cosine
    assert not Adding().score_is_cosine
    assert SelfAttention().score_is_cosine
    assert not SelfAttention(similarity={"form": "normalised"}).score_is_cosine
    assert not HashCrossAttention().score_is_cosine


def test_second_stages_rerank_the_corpus_and_score_lists(sets):
    queries, corpus = sets()
    corpus = corpus[np.r_[0:2, 12:72]]  # group 0 has two sequences, so that lists differ in length
    full, sampled = make_task(queries, corpus), make_task(queries, corpus, protocol="sampled", negatives=50)
    assert np.allclose(answer(SecondStage(), full).top_scores, -answer(Pairwise(), full).top_scores[:, ::-1], atol=1e-6)
    found, expected = answer(SecondStage(), sampled), answer(Pairwise(), sampled)
    assert len(set(sampled.candidates.tolist())) == 2
    assert (found.top_rows == expected.top_rows).all()
    assert (found.top_scores == expected.top_scores).all()


class Broken(Pairwise):
    def compute_scores(self, queries, candidates):
        scores = super().compute_scores(queries, candidates)
        scores[..., 3] = np.nan
        return scores


class Lazy(Pairwise):
    def compute_scores(self, queries, candidates):
        return super().compute_scores(queries, candidates)[:, :-1]


def test_bad_answers_are_errors(sets):
    queries, corpus = sets()
    task = make_task(queries, corpus)
    with pytest.raises(UserError, match=r"sequence \w+: its score is not finite; look for extreme times"):
        answer(Broken(), task, what="shares")
    with pytest.raises(UserError, match="12 queries and 72 candidates"):
        answer(Lazy(), task)
