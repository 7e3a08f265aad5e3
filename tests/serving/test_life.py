"""The life of a server: acknowledged writes survive kill -9, and an orderly end finishes what runs."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable

import neuroseqret as nsr
from neuroseqret.feedback.judgements import Judgements
from serving.running_server import RunningServer


def one(id):
    return {"sequences": [{"id": id, "times": [0.0, 1.0, 2.0], "marks": [0, 1, 2]}]}


def test_kill_9_under_writes_loses_nothing_that_was_acknowledged(own_index, tmp_path):
    acknowledged, judged = [], []

    def add(server, writer):
        for at in range(10_000):
            try:
                id = f"w{writer}-{at}"
                if server.call("POST", "/v1/sequences", one(id))[0] == 200:
                    acknowledged.append(id)
                body = {"query": {"id": "corpus-000000"}, "judgements": [{"id": id, "relevant": True}], "user": "u"}
                if server.call("POST", "/v1/feedback", body)[0] == 200:
                    judged.append(id)
            except OSError:
                return

    server = RunningServer(own_index, log=tmp_path / "log")
    threads = [threading.Thread(target=add, args=(server, writer)) for writer in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(2.5)
    server.stop(signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert len(acknowledged) > 5
    assert judged
    found = nsr.Index.open(own_index).get(acknowledged)
    assert found.ids.to_pylist() == acknowledged
    assert set(judged) <= {judgement.id for judgement in Judgements(own_index).latest()}
    assert nsr.Index.open(own_index).check() == []


def test_an_orderly_end_finishes_searches_and_commits(own_index, tmp_path):
    lines = [{"id": f"e{at}", "times": [0.0, 1.0], "marks": [0, 1]} for at in range(3000)]
    body, answers = "\n".join(map(json.dumps, lines)).encode(), []
    server = RunningServer(own_index, log=tmp_path / "log")
    upload = threading.Thread(
        target=lambda: answers.append(server.call("POST", "/v1/sequences", body, "application/x-ndjson"))
    )
    upload.start()
    time.sleep(0.15)
    assert server.stop(signal.SIGTERM) in (0, -signal.SIGTERM)
    upload.join()
    status, done, _ = answers[0]
    assert (status, done["added"]) == (200, 3000)
    assert len(nsr.Index.open(own_index)) == 3080


def soon(happens: Callable[[], bool]) -> None:
    """Other processes' commits are followed in the background."""
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_several_processes_serve_one_index_and_see_each_others_commits(own_index, tmp_path):
    with RunningServer(own_index, "--workers", "2", log=tmp_path / "log") as server:
        end = time.monotonic() + 60
        while server.call("GET", "/health/ready")[0] != 200 and time.monotonic() < end:
            time.sleep(0.2)
        assert server.post("/v1/sequences", one("shared"))["added"] == 1
        soon(lambda: {server.get("/v1/index")["sequences"] for _ in range(20)} == {81})
        assert b"neuroseqret_requests_total" in server.call("GET", "/metrics")[1]


def test_new_commits_of_other_processes_are_found(server, served_index):
    index = nsr.Index.open(served_index)
    sequence = index.get("corpus-000001")[0]
    index.add(
        nsr.EventSequences.from_lists(
            [(sequence.times, sequence.marks)], ids=["elsewhere"], mark_names=sequence.mark_names
        )
    )

    def found() -> bool:
        hits = server.post("/v1/search", {"query": {"id": "corpus-000001"}, "k": 3})["results"][0]["hits"]
        return "elsewhere" in [hit["id"] for hit in hits]

    soon(found)
    index.remove("elsewhere")
    soon(lambda: not found())


def test_an_address_that_is_taken_is_one_line(server, served_index):
    from cli.calling import call

    done = call("serve", str(served_index), "--port", str(server.port))
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
