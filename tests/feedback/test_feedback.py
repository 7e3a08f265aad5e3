"""Judgements: stored safely, applied to a query, learned from."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import neuroseqret as nsr
from cli.calling import call
from neuroseqret.data.relevance import Relevance
from neuroseqret.feedback.judgements import FILE, Judgements
from neuroseqret.feedback.labels import labels_of
from neuroseqret.feedback.rocchio import refined
from neuroseqret.methods.registry import make


def unit(rng, *shape):
    drawn = rng.normal(size=shape)
    return (drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)).astype(np.float32)


def test_rocchio_is_the_formula():
    rng = np.random.default_rng(0)
    query, good, bad = unit(rng, 8), unit(rng, 3, 8), unit(rng, 2, 8)
    by_hand = query + 1.0 * sum(good) / 3 - 0.5 * sum(bad) / 2
    np.testing.assert_allclose(refined(query, good, bad), by_hand / np.linalg.norm(by_hand), atol=1e-6)
    assert np.array_equal(refined(query, good[:0], bad[:0]), query) or np.allclose(refined(query, good[:0]), query)
    assert refined(query, good) @ good[0] > query @ good[0]
    np.testing.assert_array_equal(refined(query, -query[None]), query)  # nothing is left: stay


def test_judgements_come_back_in_order_and_the_last_one_holds(tmp_path):
    kept = Judgements(tmp_path)
    assert list(kept.read()) == []
    kept.append({"id": "q"}, [("a", True), ("b", True)], "anna")
    kept.append({"id": "q"}, [("a", False)], "anna")
    kept.append({"id": "q"}, [("b", None)], "anna")
    kept.append({"id": "q"}, [("b", True)], "bob")
    assert [one.id for _, one in kept.read()] == ["a", "b", "a", "b", "b"]
    assert [(one.id, one.relevant, one.user) for one in kept.latest()] == [("a", False, "anna"), ("b", True, "bob")]
    position, first = next(kept.read())
    assert next(one for _, one in kept.read(position)) != first


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_line_that_a_crash_cut_short_is_skipped_and_harms_no_other(tmp_path, cut):
    kept = Judgements(tmp_path)
    kept.append({"id": "q"}, [("a", True), ("b", True)])
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:-cut])
    kept.append({"id": "q"}, [("c", True)])
    ids = [one.id for _, one in kept.read()]
    assert ids[0] == "a"
    assert ids[-1] == "c"


def test_threads_that_judge_at_once_lose_nothing(tmp_path):
    def judge(writer):
        for at in range(5):
            Judgements(tmp_path).append({"id": "q"}, [(f"{writer}-{at}", True)])

    threads = [threading.Thread(target=judge, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Judgements(tmp_path).latest()) == 20


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """An index, and judgements that say what the groups say."""
    data = nsr.simulate(4, 10, 4, seed=1)
    folder = tmp_path_factory.mktemp("judged")
    index = nsr.Index.create(make("histogram", "default").fit(None, data.corpus), folder / "index", data.corpus)
    kept = Judgements(index.folder)
    for row in range(8):
        query = data.queries[row]
        shown = {"id": query.id, "times": query.times.tolist(), "marks": [query.mark_names[m] for m in query.marks]}
        hits = index.search(query, 10)
        kept.append(shown, [(hit.id, hit.group == query.group) for hit in hits], "anna")
    kept.append({"id": "corpus-000000", "events": [0, 10]}, [("corpus-000001", True), ("gone", True)])
    kept.append({"id": "gone"}, [("corpus-000001", True)])
    return data, index


def test_judgements_become_labels(judged):
    data, index = judged
    found = labels_of(index, data.corpus)
    groups = data.corpus.groups.to_pylist()
    for row in range(len(found.queries) - 1):
        query = next(one for one in data.queries if np.array_equal(one.times, found.queries[row].times))
        assert {groups[at] for at in found.relevance.of(row)} == {query.group}
    assert found.relevance.of(len(found.queries) - 1).tolist() == [1]
    assert len(found.queries[-1]) == 10
    assert found.skipped >= 1
    assert set(found.queries.column("split").to_pylist()) == {"train"}  # nothing that was judged is kept aside


def test_judgements_are_added_to_the_labels_that_there_are(judged):
    data, index = judged
    alone, both = labels_of(index, data.corpus), labels_of(index, data.corpus, data.queries, data.relevance)
    known = Relevance.from_groups(data.queries, data.corpus)
    assert len(both.queries) == len(data.queries) + len(alone.queries) == len(both.relevance)
    assert both.relevance.of(3).tolist() == known.of(3).tolist()
    assert both.queries.column("split").to_pylist()[len(data.queries) :] == ["train"] * len(alone.queries)
    groups = np.array(data.corpus.groups.to_pylist())
    for row in range(len(alone.queries)):  # what was not looked at is relevant too
        group = groups[alone.relevance.of(row)[0]]
        assert both.relevance.of(len(data.queries) + row).tolist() == np.flatnonzero(groups == group).tolist()
    expected = Relevance.from_groups(data.queries, data.corpus)
    assert both.relevance.labels.tolist() == expected.labels.tolist()  # so `fit` can still use the groups


def test_a_wrong_judgement_does_not_move_a_query_to_another_group(tmp_path, judged):
    data, _ = judged
    groups = np.array(data.corpus.groups.to_pylist())
    ids, some, others = data.corpus.ids.to_pylist(), *(np.flatnonzero(groups == g) for g in np.unique(groups)[:2])
    index = nsr.Index.create(make("histogram", "default").fit(None, data.corpus), tmp_path / "index", data.corpus)
    kept = Judgements(index.folder)
    kept.append({"id": ids[some[0]]}, [(ids[at], True) for at in [*some[1:4], others[0]]])
    kept.append({"id": ids[others[1]]}, [(ids[at], True) for at in (some[1], others[2])])  # no majority
    found = labels_of(index, data.corpus, data.queries)
    assert len(found.queries) == len(data.queries) + 1
    assert found.relevance.of(len(data.queries)).tolist() == some.tolist()
    assert (found.judgements, found.skipped) == (4, 2)


def test_labels_that_are_no_groups_stay_as_they_are(judged):
    data, index = judged
    qrels = Relevance.from_groups(data.queries, data.corpus)
    qrels = Relevance(qrels.offsets, qrels.rows, qrels.corpus_size)
    alone, both = labels_of(index, data.corpus), labels_of(index, data.corpus, data.queries, qrels)
    assert both.relevance.labels is None
    assert both.relevance.of(len(data.queries)).tolist() == alone.relevance.of(0).tolist()


def test_the_majority_decides(tmp_path, judged):
    data, _ = judged
    index = nsr.Index.create(make("histogram", "default").fit(None, data.corpus), tmp_path / "index", data.corpus)
    with pytest.raises(nsr.UserError, match="no judgements are stored"):
        labels_of(index, data.corpus)
    kept = Judgements(index.folder)
    for user, said in (("a", True), ("b", True), ("c", False)):
        kept.append({"id": "corpus-000000"}, [("corpus-000001", said), ("corpus-000002", not said)], user)
    found = labels_of(index, data.corpus)
    assert found.relevance.of(0).tolist() == [1]


def test_fit_learns_from_feedback(judged, tmp_path):
    data, index = judged
    nsr.write(data.corpus.without_columns("group"), tmp_path / "corpus.parquet")
    options = ["--model", "histogram-metric", "--out", str(tmp_path / "model"), "--max-seconds", "3"]
    done = call("fit", str(tmp_path / "corpus.parquet"), "--feedback", str(index.folder), *options)
    assert done.returncode == 0, done.stderr
    assert "judgements" in done.stderr
    assert nsr.load(tmp_path / "model").card.unlabelled is False
    refused = call("fit", str(tmp_path / "corpus.parquet"), "--feedback", str(tmp_path / "none"), *options)
    assert refused.returncode == 2


def test_judged_queries_keep_a_value_that_is_constant_within_every_sequence(tmp_path):
    """Readers make one number per sequence of such a column; a model may read it as a value of events."""
    corpus = nsr.simulate(4, 10, 8, seed=0).corpus.without_columns("group")
    corpus = corpus.with_column("amount", np.arange(len(corpus), dtype=float)).with_column("note", corpus.ids)
    index = nsr.Index.create(make("histogram", "default").fit(None, corpus), tmp_path / "index", corpus)
    ids = corpus.ids.to_pylist()
    Judgements(index.folder).append({"id": ids[3]}, [(ids[8], True)])
    (query,) = labels_of(index, corpus).queries
    assert query.metadata["amount"] == [3.0] * len(query)
    assert "note" not in query.metadata
    given = corpus[:1].with_column("amount", ["much"]).with_column("split", ["train"]).with_column("id", ["own"])
    both = labels_of(index, corpus, given, Relevance.of_table(np.eye(1, len(corpus), dtype=bool))).queries
    assert both.ids.to_pylist() == ["own", "judged-0"]
