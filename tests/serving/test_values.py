"""Values of events over HTTP and through the client: given, stored, returned, explained, judged."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import neuroseqret as nsr
import small_settings
from neuroseqret.data.sequences import EventSequences
from neuroseqret.feedback.labels import labels_of
from serving.running_server import RunningServer

SMALL = {**small_settings.SMALL, "head": {"steps": 20, "evaluations": 1}, "selection": {"steps": 5}}


def sequences(kind, number, seed):
    """Groups differ in the level of their amounts alone; every fourth amount of the first is missing."""
    rng = np.random.default_rng(seed)
    lists = [(np.cumsum(rng.exponential(1, 12)), rng.integers(0, 3, 12)) for _ in range(number)]
    amounts = [np.exp(rng.normal(2.0 * (row % 2), 1, 12)).tolist() for row in range(number)]
    amounts[0][::4] = [None] * 3
    names = {"ids": [f"{kind}{row}" for row in range(number)], "groups": [f"g{row % 2}" for row in range(number)]}
    return EventSequences.from_lists(lists, **names, metadata={"amount": amounts, "age": list(range(number))})


CORPUS, QUERIES = sequences("c", 40, 0), sequences("q", 20, 1)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    model = nsr.SelfAttention(values=["amount"], **SMALL).fit(QUERIES, CORPUS, seed=1)
    return nsr.Index.create(model, tmp_path_factory.mktemp("values") / "index", CORPUS)


@pytest.fixture(scope="module")
def server(index, tmp_path_factory):
    with RunningServer(index.folder, log=tmp_path_factory.mktemp("log") / "log") as running:
        yield running


@pytest.fixture(scope="module")
def remote(server):
    return nsr.connect(server.url)


def as_json(one, **changed):
    amounts = one.metadata["amount"]
    found = {"id": one.id, "times": one.times.tolist(), "marks": one.marks.tolist(), "values": {"amount": amounts}}
    return {**found, **changed}


def same(mine, theirs):
    assert [hit.id for hit in mine] == [hit.id for hit in theirs]
    assert [hit.score for hit in mine] == pytest.approx([hit.score for hit in theirs], abs=1e-5)
    assert [hit.metadata for hit in mine] == [hit.metadata for hit in theirs]
    assert mine.asked == theirs.asked


def test_the_client_searches_with_values_as_the_index_does(remote, index):
    for row in (0, 1):
        same(remote.search(QUERIES[row], 5), index.search(QUERIES[row], 5))
    same(remote.search(id="c0", k=5), index.search(id="c0", k=5))
    same(remote.search(id="c0", events=(2, 9), k=5), index.search(id="c0", events=(2, 9), k=5))
    assert remote.info()["values"] == ["amount"]
    with pytest.raises(nsr.UserError, match="no column 'amount'"):
        remote.search(QUERIES[:1].without_columns("amount"))


def test_events_and_ids_can_be_asked_together(server, index):
    asked = [as_json(QUERIES[0]), {"id": "c1"}, {"id": "c0", "events": [2, 9]}]
    results = server.post("/v1/search", {"queries": asked, "k": 4})["results"]
    wanted = [index.search(QUERIES[0], 4), index.search(id="c1", k=4), index.search(id="c0", events=(2, 9), k=4)]
    for result, hits in zip(results, wanted, strict=True):
        assert [(hit["id"], pytest.approx(hit["score"], abs=1e-5)) for hit in result["hits"]] == [
            (hit.id, hit.score) for hit in hits
        ]
    hit = results[0]["hits"][0]
    assert hit["values"]["amount"] == index.get(hit["id"])[0].metadata["amount"]
    assert set(hit["metadata"]) == {"age"}


@pytest.mark.parametrize("kind", ["client", "application/json", "application/x-ndjson", "parquet"])
def test_added_in_every_form_they_come_back(server, remote, index, kind):
    one = sequences(f"{kind[-6:]}-", 1, 5)
    if kind == "client":
        assert remote.add(one).added == 1
    else:
        row, sink = as_json(one[0], metadata={"age": 0}, group="g0"), io.BytesIO()
        pq.write_table(one.to_arrow(), sink)
        bodies = {"application/json": {"sequences": [row]}, "application/x-ndjson": row}
        body = sink.getvalue() if kind == "parquet" else json.dumps(bodies[kind]).encode()
        sent = "application/vnd.apache.parquet" if kind == "parquet" else kind
        assert server.call("POST", "/v1/sequences", body, sent)[1]["added"] == 1
    assert server.get(f"/v1/sequences/{one[0].id}")["values"]["amount"] == one[0].metadata["amount"]
    assert remote.get(one[0].id) == index.get(one[0].id)
    assert remote.search(id=one[0].id, k=1)[0].id == index.search(one[0], k=2)[1].id
    assert remote.remove(one[0].id) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"values": {"amount": [1.0]}}, "sequence q1: 1 values 'amount' but 12 times; give one number per event"),
        ({"values": {}}, "sequence q1: no values 'amount', which the index's model reads"),
        ({"values": {"amount": ["much"] * 12}}, "values.amount.0"),
        ({"values": {"amount": [1.0] * 12, "speed": [1.0] * 12}}, "reads no values 'speed'; it reads 'amount'"),
    ],
)
def test_mistakes_are_one_line(server, changed, said):
    status, problem, _ = server.call("POST", "/v1/search", {"query": as_json(QUERIES[1], **changed)})
    assert status == 422, problem
    assert said in problem["detail"], problem
    status, problem, _ = server.call("POST", "/v1/sequences", {"sequences": [as_json(QUERIES[1], **changed)]})
    if "speed" in said:  # what the model does not read may be stored
        assert (status, problem["added"]) == (200, 1)
        assert server.call("DELETE", "/v1/sequences/q1")[0] == 200
    else:
        assert status == 422, problem
        assert said in problem["detail"], problem


def test_a_name_is_metadata_or_values_and_not_both(server):
    row = as_json(QUERIES[1], metadata={"amount": 3})
    status, problem, _ = server.call("POST", "/v1/sequences", {"sequences": [row]})
    assert (status, "give it in one of them" in problem["detail"]) == (422, True)


def test_a_score_by_values_is_explained_and_embedded(remote, server, index):
    hit = index.search(QUERIES[1], 1)[0]
    why, own = remote.explain(QUERIES[1], hit), nsr.explain(index.model, QUERIES[1], index.get(hit.id)[0])
    assert why.score == pytest.approx(own.score, abs=1e-5)
    vector = server.post("/v1/embed", {"sequences": [as_json(QUERIES[1])]})["embeddings"][0]
    assert vector == pytest.approx(index.model.embed(QUERIES[1:2], "query")[0].tolist(), abs=1e-5)


def test_judged_queries_keep_their_values_for_the_next_fit(remote, server, index):
    assert remote.feedback(QUERIES[0], {"c0": True, "c1": False}) == 2
    (stored, *_) = server.get("/v1/feedback")["judgements"]
    assert stored["query"]["values"]["amount"] == QUERIES[0].metadata["amount"]
    labels = labels_of(index, CORPUS, QUERIES)
    judged = labels.queries[len(labels.queries) - 1]
    assert judged.metadata["amount"] == QUERIES[0].metadata["amount"]
    assert index.model.embed(labels.queries, "query").shape[0] == len(QUERIES) + 1
