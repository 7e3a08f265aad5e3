from __future__ import annotations

import numpy as np
import pytest

from benchmark_scripts import load
from naive import index as naive
from naive.cross_data import first_stage, small_set
from neuroseqret.baselines.histogram import Histogram
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.index import Index, reader
from neuroseqret.index.search import expanded
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.models.cross.cross_attention import CrossAttention
from neuroseqret.models.self_attention.model import SelfAttention


def test_rerank_orders_the_best_n_by_the_other_model(tiny, tmp_path):
    corpus, queries = naive.some_sequences(80), naive.some_sequences(4, seed=9)
    index = Index.create(tiny, tmp_path / "index", corpus)
    reranker = naive.LengthReranker()
    lengths = dict(zip(corpus.ids.to_pylist(), corpus.lengths.tolist(), strict=True))
    for query in queries:
        first = [name for name, _ in naive.ranking(tiny, query, corpus)[:20]]
        hits = index.search(query, 5, rerank=reranker, rerank_top=20)
        expected = sorted(first, key=lambda name: (abs(lengths[name] - len(query)), name))[:5]
        assert [hit.id for hit in hits] == expected
        assert [hit.score for hit in hits] == [-abs(lengths[name] - len(query)) for name in expected]
        assert hits.report.reranked == 20
    reranker.save(tmp_path / "reranker")
    assert index.search(queries[0], 5, rerank=tmp_path / "reranker", rerank_top=20) == index.search(
        queries[0], 5, rerank=reranker, rerank_top=20
    )
    assert len(index.search(queries[0], 1000, rerank=reranker, rerank_top=5)) == 80
    with pytest.raises(UserError, match="name the model with rerank"):
        index.search(queries[0], 5, rerank_top=20)


def test_a_second_stage_on_the_model_of_the_index_embeds_no_candidate_again(tmp_path, monkeypatch):
    queries, corpus = small_set()
    model = CrossAttention(first_stage=first_stage(), memory={"out_of_fold_steps": 3}).fit(queries, corpus, seed=0)
    Index.create(model.first_stage, tmp_path / "index", corpus)
    index = Index.open(tmp_path / "index")  # its model is a copy of the first stage
    short = {"warm_up": {"steps": 1}, "joint": {"steps": 1}, "head": {"steps": 3}, "selection": None}
    other = Index.create(SelfAttention(**short).fit(queries, corpus, seed=5), tmp_path / "other", corpus)
    compute, embedded = SelfAttention.compute_embeddings, []

    def spy(self, many, role):
        embedded.append((role, len(many)))
        return compute(self, many, role)

    monkeypatch.setattr(SelfAttention, "compute_embeddings", spy)
    for strengths in ((0.0, 0.0), (0.6, 0.0), (0.6, 0.4)):
        model.correction.strength, model.correction.event_strength = strengths
        expected = dict(zip(corpus.ids.to_pylist(), model.score(queries[0], corpus).tolist(), strict=True))
        for searched, more in ((index, {}), (index, {"expand": True}), (other, {})):
            embedded.clear()
            hits = searched.search(queries[0], 10, rerank=model, rerank_top=40, **more)
            if searched is index:
                assert embedded == [("query", 1)]
            else:
                assert ("corpus", 40) in embedded  # of another model, so nothing can be used again
            assert [hit.score for hit in hits] == pytest.approx([expected[hit.id] for hit in hits], abs=2e-5)
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_reranking_costs_a_fraction_of_scoring_the_candidates_anew(tmp_path):
    benchmark = load("reranking")
    found = {one["strengths"]: one for one in benchmark.in_a_search(400, tmp_path / "index")}
    assert found["zero"]["ratio"] < 0.1  # 0.01 on a quiet machine
    assert found["memory and events"]["ratio"] < 0.8  # 0.3


@pytest.mark.parametrize("windows", [{}, {"window_events": 12}])
def test_rerank_sees_the_same_events_wherever_they_lie(tiny, tmp_path, monkeypatch, windows):
    corpus, queries = naive.some_sequences(90), naive.some_sequences(3, seed=9)
    corpus = corpus.with_column("end", corpus.observed()[1] + 1)

    class Exact(naive.LengthReranker):
        """Scores by everything that a candidate has: its events, its window, its id."""

        def compute_scores(self, queries, candidates):
            sums = np.add.reduceat(candidates.times * (1 + candidates.marks), candidates.offsets[:-1])
            sums += candidates.ends + np.array([len(name) for name in candidates.ids.to_pylist()])
            return np.tile(sums.astype(np.float32), (len(queries), 1))

    plain = Index.create(tiny, tmp_path / "plain", corpus, **windows)
    expected = [[(h.id, h.score) for h in hits] for hits in plain.search(queries, 20, rerank=Exact(), rerank_top=300)]
    monkeypatch.setattr(reader, "REBUILD_ROWS", 40)
    mixed = Index.create(tiny, tmp_path / "mixed", corpus[::-1][:70], **windows)
    mixed.refresh()
    monkeypatch.setattr(reader, "REBUILD_ROWS", 10_000)
    mixed.add(corpus)
    assert [
        [(h.id, h.score) for h in hits] for hits in mixed.search(queries, 20, rerank=Exact(), rerank_top=300)
    ] == expected
    assert 0 < mixed.info()["not_yet_in_structure"] < len(mixed)


def test_a_model_whose_score_is_more_than_kappa_reranks_by_it(tmp_path):
    class WithSimilarity(naive.TinyEmbedder):
        def compute_scores(self, queries, candidates):
            kappa = super().compute_scores(queries, candidates)
            return kappa + naive.LengthReranker().compute_scores(queries, candidates)

    model = WithSimilarity()
    assert not model.score_is_cosine
    assert naive.TinyEmbedder().score_is_cosine
    corpus, query = naive.some_sequences(60), naive.some_sequences(1, seed=9)[0]
    index = Index.create(model, tmp_path / "index", corpus)
    hits = index.search(query, 5, rerank_top=60)
    scores = model.score(query, corpus)
    order = np.argsort(-scores)[:5]
    assert [hit.id for hit in hits] == [f"s{row}" for row in order]
    assert [hit.score for hit in hits] == pytest.approx(scores[order].tolist(), abs=1e-5)


class Lopsided(naive.TinyEmbedder):
    """Embeds queries and corpus differently, as a model that knows groups does."""

    def compute_embeddings(self, many, role):
        vectors = super().compute_embeddings(many, role)
        return np.roll(vectors, 1, axis=1) if role == "query" else vectors


def test_reranked_by_histogram_a_copy_of_the_query_comes_first(tmp_path):
    """What the FAQ says to those who look for likeness: the score of a copy is 1, whatever the index's model thinks."""
    corpus = naive.some_sequences(60)
    alike = Histogram().fit(None, corpus)
    index = Index.create(Lopsided(), tmp_path / "index", corpus)
    assert any(hits[0].id != hits.query for hits in index.search(corpus, k=1))
    for hits in index.search(corpus, k=1, rerank=alike, rerank_top=len(corpus)):
        assert hits[0].id == hits.query
        assert hits[0].score == pytest.approx(1, abs=1e-5)


def test_expansion_moves_the_query_towards_its_best_hits(tiny, tmp_path):
    corpus, query = naive.some_sequences(100), naive.some_sequences(1, seed=9)[0]
    index = Index.create(tiny, tmp_path / "index", corpus)
    vectors, vector = tiny.embed(corpus), tiny.embed(query, "query")[0]
    kappa = vectors @ vector
    top = np.argsort(-kappa)[:10]
    moved = vector.astype(float).copy()
    for row in top:
        moved += max(kappa[row], 0) ** 3 * vectors[row]
    moved /= np.linalg.norm(moved)
    assert np.allclose(expanded(vector, kappa[top], vectors[top]), moved, atol=1e-6)
    hits = index.search(query, expand=True)
    order = np.argsort(-(vectors @ moved))[:10]
    assert [hit.id for hit in hits] == [f"s{row}" for row in order]
    assert hits.report.comparisons == 100  # twice, but it cannot be more than there are


@pytest.mark.parametrize("exhaustive", [True, False])
def test_an_empty_index_has_no_hits(tiny, tmp_path, exhaustive):
    index = Index.create(tiny, tmp_path / "index")
    query = naive.some_sequences(1)[0]
    for options in ({}, {"expand": True}, {"rerank": naive.LengthReranker()}, {"where": "id = 'a'"}):
        hits = index.search(query, exhaustive=exhaustive, **options)
        assert hits == []
        assert hits.report.comparisons == 0
    assert len(index) == 0
    index.compact()
    assert len(Index.open(tmp_path / "index")) == 0
    index.add(naive.some_sequences(3))
    index.remove(["s0", "s1", "s2"])
    assert index.search(query) == []


def test_k_beyond_the_corpus_and_no_queries(tiny, tmp_path):
    corpus = naive.some_sequences(12)
    index = Index.create(tiny, tmp_path / "index", corpus)
    assert len(index.search(corpus[0], 1000)) == 12
    assert index.search(corpus[:0]) == []
    with pytest.raises(UserError, match="must be 1 or more"):
        index.search(corpus[0], 0)
    with pytest.raises(UserError, match="fraction must be above 0"):
        index.search(corpus[0], fraction=0.0)


def test_a_query_of_one_event_and_one_of_a_hundred_thousand(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(30))
    for length in (1, 100_000):
        query = EventSequences.from_lists([(np.arange(length) * 0.5, np.arange(length) % 4)])
        assert len(index.search(query[0], 5)) == 5


def test_a_mark_that_the_model_does_not_know(tiny, tmp_path):
    index = Index.create(tiny, tmp_path / "index", naive.some_sequences(30, marks=3))
    assert len(index.search(EventSequences.from_lists([([0.0, 1.0], [3, 3])])[0])) == 10  # known, never seen
    strange = EventSequences.from_lists([([0.0], [1]), ([0.0, 1.0, 2.0], [0, 1, 4])], ids=["a", "b"])
    for ask in (index.search, index.add):
        with pytest.raises(DataError, match="sequence b: event 2: mark '4' is unknown to the model, which knows 0, 1"):
            ask(strange)


def test_marks_are_taken_by_name_and_another_time_unit_is_refused(tmp_path):
    model = naive.TinyEmbedder(mark_names=("a", "b", "c", "d"), time_unit="days")
    index = Index.create(model, tmp_path / "index")
    good = naive.some_sequences(5, mark_names=("a", "b", "c", "d"), time_unit="days")
    index.add(good)
    index.search(naive.some_sequences(1)[0])  # says nothing of names or unit: taken as meant
    other = good.with_meaning(mark_names=("a", "b", "d", "c"))  # c and d mean each other's number
    assert [hit.score for hit in index.search(other[0])] != [hit.score for hit in index.search(good[0])]
    swapped = EventSequences.from_arrays(
        good.times, np.array([0, 1, 3, 2])[good.marks], good.offsets, ids=good.ids, mark_names=("a", "b", "d", "c")
    )
    assert [hit.score for hit in index.search(swapped[0])] == [hit.score for hit in index.search(good[0])]
    assert index.add(swapped).already_there == 5
    for ask in (index.search, index.add):
        with pytest.raises(DataError, match="times are in seconds, the model's in days"):
            ask(naive.some_sequences(2, time_unit="seconds"))


def test_unknown_marks_are_dropped_or_kept_on_request(tmp_path):
    index = Index.create(naive.TinyEmbedder(mark_names=("a", "b", "c", "d")), tmp_path / "index")
    strange = EventSequences.from_lists([([0.0, 1.0, 3.0], [0, 1, 0])], ids=["x"], mark_names=("a", "zebra"))
    assert index.add(strange, unknown_marks="keep").added == 1
    stored = index.get("x")
    assert (stored.marks.tolist(), stored.mark_names) == ([0, 4, 0], ("a", "b", "c", "d", "(unknown)"))
    assert index.upsert(strange, unknown_marks="drop").replaced == 1
    stored = index.get("x")
    assert (stored.marks.tolist(), stored.times.tolist()) == ([0, 0], [0.0, 3.0])
    assert index.search(strange[0], unknown_marks="keep")[0].id == "x"
    assert index.search(strange[0], unknown_marks="drop", rerank=naive.LengthReranker())[0].id == "x"


def test_a_reranker_of_other_marks_or_another_time_unit_is_refused(tmp_path):
    index = Index.create(naive.TinyEmbedder(mark_names=("a", "b", "c", "d"), time_unit="days"), tmp_path / "index")
    index.add(naive.some_sequences(5))
    query = naive.some_sequences(1)[0]
    naive.TinyEmbedder().save(tmp_path / "says nothing")
    assert len(index.search(query, rerank=tmp_path / "says nothing")) == 5
    naive.TinyEmbedder(mark_names=("a", "b", "d", "c")).save(tmp_path / "marks")
    with pytest.raises(UserError, match="learned the marks a, b, d, c; the index has a, b, c, d"):
        index.search(query, rerank=tmp_path / "marks")
    naive.TinyEmbedder(time_unit="seconds").save(tmp_path / "unit")
    with pytest.raises(UserError, match="learned times in seconds; the index has days"):
        index.search(query, rerank=tmp_path / "unit")


def test_windows_find_the_part_of_a_long_sequence(tiny, tmp_path):
    corpus = naive.some_sequences(40, shortest=40, longest=60)
    index = Index.create(tiny, tmp_path / "index", corpus, window_events=10, window_step=5)
    parent = corpus[17]
    part = EventSequences.from_lists([(parent.times[15:25], parent.marks[15:25])])[0]
    hits = index.search(part, 8)
    assert len({hit.id for hit in hits}) == 8
    best = hits[0]
    assert (best.id, best.parent, best.window, best.offset, best.stop) == ("s17", "s17", "s17[15:25]", 15, 25)
    assert (best.start, best.end) == (parent.times[15], parent.times[24])
    assert best.score == pytest.approx(1, abs=1e-4)
    assert best.metadata["role"] == parent.metadata["role"]
    assert len(index.search(part, 1000)) == 40
    assert index.add(corpus).already_there == 40
    before = len(index)
    longer = EventSequences.from_lists([(np.arange(100.0), np.zeros(100, int))], ids=["s17"])
    index.upsert(longer)
    assert len(index) == before - len(corpus[17:18].windows(10, step=5)) + 19
    assert index.remove("s17") == 1
    assert "s17" not in {hit.id for hit in index.search(part, 1000)}
    reranked = index.search(part, 5, rerank=naive.LengthReranker())
    assert reranked[0].score == 0


@pytest.mark.parametrize("dimension", [8, 32])
def test_a_model_of_another_dimension_is_refused(tiny, tmp_path, dimension):
    Index.create(tiny, tmp_path / "index", naive.some_sequences(30))
    index = Index.open(tmp_path / "index", naive.TinyEmbedder(dimension=dimension))
    for ask in (index.search, index.add, index.upsert):
        with pytest.raises(UserError, match=f"embeddings have {dimension} dimensions, the index has 16; use the model"):
            ask(naive.some_sequences(2, seed=9, prefix="q"))
    assert len(Index.open(tmp_path / "index")) == 30


def test_an_embedding_that_is_not_finite_is_refused(tmp_path):
    class Broken(naive.TinyEmbedder):
        def compute_embeddings(self, many, role):
            vectors = super().compute_embeddings(many, role)
            vectors[[name.startswith("bad") for name in many.ids.to_pylist()], 3] = np.nan
            return vectors

    index = Index.create(Broken(), tmp_path / "index", naive.some_sequences(30))
    mixed = naive.some_sequences(3).with_column("id", ["a", "bad", "bad2"])
    for ask in (index.search, index.add, index.upsert):
        with pytest.raises(DataError, match="sequence bad: its embedding is not finite; look for extreme"):
            ask(mixed)
    assert len(index) == 30


@pytest.mark.parametrize("options", [{}, {"candidates": "cells", "at_least": 1}, {"window_events": 2}])
def test_equal_scores_are_ordered_by_id_whoever_was_stored_first(tiny, tmp_path, options):
    names = [f"t{i:02}" for i in range(30)]
    same = EventSequences.from_lists([([0.0, 1.0, 2.0, 3.0], [0, 1, 0, 1])] * 30, ids=names)
    other = naive.some_sequences(40)
    index = Index.create(tiny, tmp_path / "index", EventSequences.concat([same[::-2], other[:20]]), **options)
    whole = [*names, *(hit.id for hit in index.search(same[0], 100) if hit.id.startswith("s"))]

    def agree(shown):
        for k in (1, 5, 29, 30, 31, 40):
            assert [hit.id for hit in index.search(same[0], k)] == shown[:k]
            reranked = index.search(same[0], min(k, 30), rerank=naive.LengthReranker(), rerank_top=30)
            assert [hit.id for hit in reranked] == shown[: min(k, 30)]
        if "window_events" in options:
            assert {hit.offset for hit in index.search(same[0], 30)} == {0}

    index.compact()
    index.add(same[::2])  # some in the structure, some not yet
    agree(whole)
    index.compact()
    agree(whole)


def test_reranked_scores_that_are_equal_are_ordered_by_id(tiny, tmp_path):
    pairs = [([0.0, 1.0, 2.0], [0, 1, 2])] * 5 + [([0.0, 1.0, 3.0], [0, 1, 3])] * 5
    mixed = EventSequences.from_lists(pairs, ids=[*"jihgf", *"edcba"])
    index = Index.create(tiny, tmp_path / "index", mixed)
    assert "".join(hit.id for hit in index.search(mixed[0], rerank=naive.LengthReranker())) == "abcdefghij"


def test_windows_of_few_sequences_are_not_all_fetched(tiny, tmp_path, monkeypatch):
    long = naive.some_sequences(3, shortest=900, longest=900)
    index = Index.create(tiny, tmp_path / "index", long, window_events=4, window_step=2)
    fetched, best = [], Snapshot.best
    monkeypatch.setattr(Snapshot, "best", lambda self, *a, **o: fetched.append(a[1]) or best(self, *a, **o))
    hits = index.search(long[0:1].windows(4)[7], 10)
    assert sorted(hit.id for hit in hits) == ["s0", "s1", "s2"]
    assert max(fetched) < 700 < len(index)
    assert hits == index.search(long[0:1].windows(4)[7], 3)


@pytest.mark.parametrize("windows", [{"window_events": 6, "window_step": 4}, {"window_duration": 2.5}])
def test_a_windows_end_is_known_whatever_the_ids_look_like(tiny, tmp_path, windows):
    names = ["a[1:2]", "b:7]", "c", "d[0:99]:", "e"] * 2
    corpus = naive.some_sequences(10).with_column("id", [f"{name}{i}" for i, name in enumerate(names)])
    index = Index.create(tiny, tmp_path / "index", corpus[:6], **windows)
    index.compact()
    index.add(corpus[6:])  # some windows are in the hot structure, some in the tail
    parts = corpus.windows(events=windows.get("window_events"), duration=windows.get("window_duration"))
    if "window_step" in windows:
        parts = corpus.windows(6, step=4)
    lengths = dict(zip(parts.ids.to_pylist(), parts.lengths.tolist(), strict=True))
    hits = index.search(corpus[0], 10)
    assert len(hits) == 10
    assert index.info()["not_yet_in_structure"] > 0
    for hit in hits:
        assert hit.stop - hit.offset == lengths[hit.window]
        assert hit.window == f"{hit.id}[{hit.offset}:{hit.stop}]"


def test_a_self_model_says_whether_its_score_is_the_cosine():
    assert SelfAttention().score_is_cosine
    assert not SelfAttention("paper-literal").score_is_cosine
    assert not SelfAttention(similarity={"form": "normalised"}).score_is_cosine


@pytest.mark.parametrize("candidates", ["cells", "buckets", "hamming"])
def test_no_more_is_compared_than_there_is(tiny, tmp_path, monkeypatch, candidates):
    monkeypatch.setattr(reader, "REBUILD_ROWS", 100)
    corpus, queries = naive.some_sequences(900, longest=60), naive.some_sequences(10, seed=9, longest=60)
    options = {"candidates": candidates, "at_least": 30, "fraction": 0.02}
    index = Index.create(tiny, tmp_path / "index", corpus, **options)
    for asked in ({}, {"where": "year < 2003"}, {"where": "year = 2000", "k": 40}, {"expand": True}, {"k": 300}):
        for hits in index.search(queries, **asked):
            report = hits.report
            assert report.method == candidates
            assert len(hits) <= report.comparisons <= report.corpus
            assert (report.centres > 0) == (candidates == "cells")
