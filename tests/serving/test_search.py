"""Searches over HTTP: the same hits as `Index.search`, alone and in batches."""

from __future__ import annotations

import json
import re
import threading

import pytest

import neuroseqret as nsr
from neuroseqret.data.gaps import TimeUnitWarning
from neuroseqret.serving import reply_shapes, request_shapes
from serving.running_server import RunningServer


@pytest.fixture(scope="module")
def index(served_index):
    return nsr.Index.open(served_index)


def as_query(sequence):
    names = sequence.mark_names
    marks = [names[mark] for mark in sequence.marks.tolist()]
    return {"times": sequence.times.tolist(), "marks": marks, "start": sequence.start, "end": sequence.end}


def found(result):
    return [(hit["id"], pytest.approx(hit["score"], abs=1e-5)) for hit in result["hits"]]


def expected(hits):
    return [(hit.id, hit.score) for hit in hits]


def test_one_query_gives_the_hits_of_the_index(server, index, served_data):
    query = served_data[0].queries[0]
    reply = server.post("/v1/search", {"query": as_query(query), "k": 5})
    assert expected(index.search(query, 5)) == found(reply["results"][0])
    assert {"wait", "embed", "search", "total"} <= set(reply["milliseconds"])
    assert reply["results"][0]["comparisons"] == 80
    assert reply["batch"] == 1


def test_many_queries_in_one_request(server, index, served_data):
    queries = served_data[0].queries[:6]
    reply = server.post(
        "/v1/search", {"queries": [as_query(query) for query in queries], "k": 3, "where": {"role": "GK"}}
    )
    wanted = index.search(queries, 3, where="role = 'GK'")
    assert [expected(hits) for hits in wanted] == [found(result) for result in reply["results"]]


def test_a_sequence_of_the_index_and_a_part_of_one(server, index):
    id = index.search(id="corpus-000003", k=1)[0].id
    reply = server.post("/v1/search", {"queries": [{"id": id}, {"id": id, "events": [2, 12]}], "k": 4})
    assert expected(index.search(id=id, k=4)) == found(reply["results"][0])
    assert expected(index.search(id=id, events=(2, 12), k=4)) == found(reply["results"][1])
    assert reply["results"][1]["query"] == {"id": id, "events": [2, 12]}


def test_concurrent_searches_are_batched_and_give_the_same_as_alone(server, index, served_data):
    queries = served_data[0].queries
    bodies = [{"query": as_query(queries[row]), "k": 5, "where": "age < 70" if row % 2 else None} for row in range(12)]
    alone = [server.post("/v1/search", body)["results"] for body in bodies]
    answers: dict[int, list] = {}

    def ask(row):
        answers[row] = [server.post("/v1/search", bodies[row]) for _ in range(8)]

    threads = [threading.Thread(target=ask, args=(row,)) for row in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = [reply for replies in answers.values() for reply in replies]
    for row, replies in answers.items():
        for reply in replies:
            assert [hit["id"] for hit in reply["results"][0]["hits"]] == [hit["id"] for hit in alone[row][0]["hits"]]
            assert [hit["score"] for hit in reply["results"][0]["hits"]] == pytest.approx(
                [hit["score"] for hit in alone[row][0]["hits"]], abs=1e-5
            )
    assert max(reply["batch"] for reply in together) > 1, "12 callers at once were never embedded together"


def test_a_bad_query_in_a_batch_does_not_harm_the_others(server, served_data):
    good, answers = as_query(served_data[0].queries[0]), []
    bad = {"times": [1, 2], "marks": ["no such mark", "mark 1"]}

    def ask(query):
        answers.append(server.call("POST", "/v1/search", {"query": query})[0])

    threads = [threading.Thread(target=ask, args=(query,)) for query in [good, bad] * 6]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] * 6 + [422] * 6


def test_fields_choose_what_hits_carry(server, index):
    reply = server.post("/v1/search", {"query": {"id": "corpus-000000"}, "k": 2, "fields": ["events", "age"]})
    hit = reply["results"][0]["hits"][0]
    stored = index.get(hit["id"])[0]
    assert hit["times"] == stored.times.tolist()
    assert set(hit["metadata"]) == {"age"}
    assert reply["results"][0]["query"]["times"] == index.get("corpus-000000")[0].times.tolist()


def test_dates_and_numbers_as_times(server):
    dates = {"times": ["2024-03-01T00:00:00Z", "2024-03-01T00:00:05Z"], "marks": ["mark 0", "mark 1"]}
    numbers = {"times": [1709251200, 1709251205], "marks": [0, 1]}
    first, second = server.post("/v1/search", {"queries": [dates, numbers]})["results"]
    assert first["hits"] == second["hits"]


def test_judged_sequences_move_the_search_towards_them(server, served_data):
    query = as_query(served_data[0].queries[0])
    liked = server.post("/v1/search", {"query": query, "k": 40})["results"][0]["hits"][-1]

    def score(**judged):
        hits = server.post("/v1/search", {"query": {**query, **judged}, "k": 80})["results"][0]["hits"]
        return next(hit["score"] for hit in hits if hit["id"] == liked["id"])

    assert score(relevant=[liked["id"]]) > score() > score(not_relevant=[liked["id"]])


def test_embeddings_are_those_of_the_model(server, index, served_data):
    query = served_data[0].queries[0]
    reply = server.post("/v1/embed", {"sequences": [{"id": "q", **as_query(query)}], "role": "query"})
    assert reply["embeddings"][0] == pytest.approx(index.model.embed(query, "query")[0].tolist(), abs=1e-6)
    assert reply["dimension"] == len(reply["embeddings"][0])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"query": {"id": "nobody"}}, "holds no sequence 'nobody'"),
        ({"query": {"id": "corpus-000000", "events": [0, 100000]}}, "is beyond them"),
        ({"query": {"id": "corpus-000000", "events": [5, 2]}}, "first < stop"),
        ({"query": {"times": [2, 1], "marks": [0, 0]}}, "before the previous event"),
        ({"query": {"times": [1], "marks": [0, 0]}}, "1 times but 2 marks"),
        ({"query": {"times": [1], "marks": [-1]}}, "mark -1"),
        ({"query": {"times": ["soon"], "marks": [0]}}, "write dates"),
        ({"query": {"times": ["soon"], "marks": [0]}}, "times are neither numbers nor dates ('soon' ...)"),
        ({"query": {"times": [1], "marks": [0]}, "where": "age >"}, "cannot be used"),
        ({"query": {"times": [1], "marks": [0]}, "where": "shoe = 3"}, "no column 'shoe'"),
        ({"query": {"times": [1], "marks": [0]}, "k": 0}, "k: "),
        ({"query": {"times": [1], "marks": [0]}, "rerank": True}, "no model to rerank with; start it"),
        ({"query": {"times": [1], "marks": [0]}, "rerank": "../../etc"}, "no model to rerank with; start it"),
        ({"query": {"times": [1], "marks": [0]}, "explain": True}, "cannot be explained"),
        ({"query": {"times": [1], "marks": [0]}, "size": 3}, "size: "),
        ({}, "either 'query' or 'queries'"),
        ({"query": {"times": [1], "marks": [0], "relevant": ["nobody"]}}, "holds no sequence 'nobody'"),
        ({"query": {"times": [1e400], "marks": [0]}}, "times"),
    ],
)
def test_mistakes_are_named(server, body, said):
    status, problem, headers = server.call("POST", "/v1/search", body)
    assert status == 422, problem
    assert said in problem["detail"], problem
    assert headers["content-type"] == "application/problem+json"
    assert problem["request"] == headers["x-request-id"]


def test_times_in_another_unit_come_back_with_a_warning(server, index, served_data, own_index, tmp_path):
    query = served_data[0].queries[0]
    assert server.post("/v1/search", {"query": as_query(query)})["warnings"] == []
    wrong = as_query(query)
    wrong |= dict.fromkeys(("start", "end")) | {"times": [1e6 * time for time in wrong["times"]]}
    (said,) = server.post("/v1/search", {"query": wrong})["warnings"]
    assert "times longer than" in said
    assert "check the unit" in said
    mixed = {"queries": [{"id": "corpus-000001"}, wrong, {"id": "corpus-000002"}]}
    assert server.post("/v1/search", mixed)["warnings"] == [said]
    status, problem, _ = server.call("POST", "/v1/search", {**mixed, "strict": True})
    assert (status, problem["detail"]) == (422, said)
    with RunningServer(own_index, log=tmp_path / "log") as running:
        added = running.post("/v1/sequences", {"sequences": [{"id": "new", **wrong}]})
        assert (added["added"], added["warnings"]) == (1, [said])
        slow = nsr.EventSequences.from_lists([(wrong["times"], query.marks)], mark_names=query.mark_names)
        remote = nsr.connect(running.url)
        for verb in (remote.search, remote.add):
            with pytest.warns(TimeUnitWarning, match="times longer than"):
                verb(slow)


def test_every_body_and_answer_has_an_example_that_fits(server):
    document = server.get("/openapi.json")
    names = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document["paths"])))
    assert len(names) >= 18
    for name in names:
        examples = document["components"]["schemas"][name]["examples"]
        shape = getattr(request_shapes, name, None) or getattr(reply_shapes, name)
        assert [shape.model_validate(example) for example in examples]
