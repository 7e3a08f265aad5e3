"""Reading, listing, adding and removing over HTTP."""

from __future__ import annotations

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neuroseqret as nsr
from neuroseqret.data.sequences import EventSequences

ARROW, PARQUET = "application/vnd.apache.arrow.stream", "application/vnd.apache.parquet"


def some(number, prefix, **columns):
    rng = np.random.default_rng(number)
    pairs = [(np.cumsum(rng.exponential(1, 12)), rng.integers(0, 5, 12)) for _ in range(number)]
    names = tuple(f"mark {mark}" for mark in range(5))
    return EventSequences.from_lists(pairs, ids=[f"{prefix}{i}" for i in range(number)], mark_names=names, **columns)


def stream_of(sequences):
    table, sink = sequences.to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def test_one_sequence_is_read_back_as_stored(server, served_index):
    found = server.get("/v1/sequences/corpus-000005")
    stored = nsr.Index.open(served_index).get("corpus-000005")[0]
    assert found["times"] == stored.times.tolist()
    assert found["marks"] == [stored.mark_names[mark] for mark in stored.marks]
    assert (found["group"], found["metadata"]["age"]) == (stored.group, 5)
    assert server.call("GET", "/v1/sequences/nobody")[0] == 404


def test_a_listing_goes_through_the_corpus_once(server):
    ids, cursor = [], ""
    while cursor is not None:
        page = server.get(f"/v1/sequences?limit=30&where=age%20%3C%2075{cursor and '&cursor=' + cursor}")
        ids += [one["id"] for one in page["sequences"]]
        cursor = page["next"]
    assert ids == [f"corpus-{row:06}" for row in range(75)]


def test_a_sample_depends_on_the_seed_alone(server):
    first, again, other = (server.get(f"/v1/sequences?sample=5&fields=events&seed={seed}") for seed in (1, 1, 2))
    assert first == again != other
    assert all(len(one["times"]) == len(one["marks"]) for one in first["sequences"])


@pytest.mark.parametrize("kind", ["application/json", ARROW, PARQUET, "application/x-ndjson"])
def test_added_upserted_and_removed_in_every_form(server, kind):
    prefix = f"{kind[-5:]}-"
    sequences = some(7, prefix, metadata={"role": ["GK"] * 7})
    rows = [
        {"id": one.id, "times": one.times.tolist(), "marks": one.marks.tolist(), "metadata": {"role": "GK"}}
        for one in sequences
    ]
    if kind == ARROW:
        body = stream_of(sequences)
    elif kind == PARQUET:
        sink = io.BytesIO()
        pq.write_table(sequences.to_arrow(), sink)
        body = sink.getvalue()
    elif kind == "application/json":
        body = json.dumps({"sequences": rows}).encode()
    else:
        body = "\n".join(map(json.dumps, rows)).encode()
    before = server.get("/v1/index")
    status, done, _ = server.call("POST", "/v1/sequences", body, kind)
    assert (status, done["added"], done["already_there"], done["errors"]) == (200, 7, 0, [])
    assert done["version"] > before["version"]
    assert server.call("POST", "/v1/sequences", body, kind)[1]["already_there"] == 7
    assert server.call("PUT", "/v1/sequences", body, kind)[1]["replaced"] == 7
    assert server.get("/v1/index")["sequences"] == before["sequences"] + 7
    assert server.get(f"/v1/sequences/{prefix}3")["times"] == sequences[3].times.tolist()
    assert server.call("DELETE", f"/v1/sequences/{prefix}0")[:2] == (200, {"removed": 1})
    assert server.call("DELETE", f"/v1/sequences/{prefix}0")[0] == 404
    ids = [one.id for one in sequences]
    assert server.post("/v1/sequences/remove", {"ids": [*ids, "nobody"]}) == {"removed": 6}
    assert server.get("/v1/index")["sequences"] == before["sequences"]


def test_ndjson_reports_bad_lines_and_adds_the_others(server):
    lines = [
        {"id": "n0", "times": [0, 1], "marks": [0, 1]},
        {"id": "n1", "times": [1, 0], "marks": [0, 1]},
        {"id": "corpus-000000", "times": [0, 1], "marks": [0, 1]},
        {"id": "n3", "times": [0], "marks": ["never met"]},
        {"id": "n4", "times": [0]},
    ]
    body = "\n".join([*map(json.dumps, lines), "{", ""]).encode()
    status, done, _ = server.call("POST", "/v1/sequences", body, "application/x-ndjson")
    assert (status, done["added"]) == (200, 1)
    said = {error["row"]: error["problem"] for error in done["errors"]}
    assert set(said) == {1, 2, 3, 4, 5}
    assert "before the previous" in said[1]
    assert "other events" in said[2]
    assert "never met" in said[3]
    assert "marks" in said[4]
    assert server.call("DELETE", "/v1/sequences/n0")[0] == 200


def test_a_bad_batch_of_columns_is_refused_whole(server):
    times = EventSequences.from_lists([([0.0], [0]), ([0.0, 1.0], [0, 9])], ids=["b0", "b1"])
    status, problem, _ = server.call("POST", "/v1/sequences", stream_of(times), ARROW)
    assert (status, problem["added"]) == (422, 0)
    assert "'9' is unknown" in problem["detail"]
    assert server.call("GET", "/v1/sequences/b0")[0] == 404


@pytest.mark.parametrize("kind", [ARROW, PARQUET, "application/json", "application/x-ndjson"])
@pytest.mark.parametrize("how", ["nothing", "noise", "half", "flipped"])
def test_damaged_bodies_are_the_callers_mistake(server, kind, how):
    whole = stream_of(some(3, "damaged"))
    body = {
        "nothing": b"",
        "noise": bytes(range(256)),
        "half": whole[: len(whole) // 2],
        "flipped": whole[:200] + bytes([whole[200] ^ 0xFF]) + whole[201:],
    }[how]
    status, answer, _ = server.call("POST", "/v1/sequences", body, kind)
    assert status in (200, 422), answer
    assert status == 422 or (answer["added"] == 0) or kind == ARROW
    server.post("/v1/sequences/remove", {"ids": ["damaged0", "damaged1", "damaged2"]})


def test_offsets_that_point_outside_are_refused(server):
    """A list column whose offsets lie would be read beyond its buffer."""
    times = pa.LargeListArray.from_arrays(pa.array([0, 77]), pa.array(np.arange(77.0)))
    marks = pa.LargeListArray.from_arrays(pa.array([0, 2]), pa.array([0, 1], pa.int32()))
    batch = pa.record_batch({"id": pa.array(["evil"], pa.large_string()), "times": times, "marks": marks})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    honest = np.array([0, 77]).tobytes()
    before, after = sink.getvalue().rsplit(honest, 1)  # the first one is in the header
    lying = before + np.array([0, 77_000_000]).tobytes() + after
    status, problem, _ = server.call("POST", "/v1/sequences", lying, ARROW)
    assert status == 422, problem
    assert server.get("/health/ready") == {"status": "ready"}


def test_an_unknown_content_type_is_refused(server):
    assert server.call("POST", "/v1/sequences", b"x", "text/plain")[0] == 415
    assert server.call("POST", "/v1/search", b"{}", "text/plain")[0] == 415


def test_statistics_count_what_is_there(server, served_data):
    found, corpus = server.get("/v1/statistics"), served_data[1]
    assert (found["sequences"], found["events"]) == (len(corpus), len(corpus.times))
    assert sum(mark["events"] for mark in found["marks"]) == len(corpus.times)
    assert sum(group["sequences"] for group in found["groups"]) == len(corpus)
    roles = next(column for column in found["columns"] if column["name"] == "role")
    assert {one["value"]: one["sequences"] for one in roles["values"]} == {"GK": 53, "FW": 27}
    age = next(column for column in found["columns"] if column["name"] == "age")
    assert (age["type"], age["min"], age["max"], age["distinct"]) == ("number", 0, 79, 80)
