"""`nsr.connect`: the verbs and return types of `Index`."""

from __future__ import annotations

import inspect
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pandas as pd
import pytest

import neuroseqret as nsr
from cli.calling import call
from neuroseqret.data.sequences import EventSequences
from neuroseqret.serving import transport
from neuroseqret.serving.client import url_of
from serving.running_server import RunningServer


@pytest.fixture(scope="module")
def remote(server):
    return nsr.connect(server.url)


@pytest.fixture(scope="module")
def index(served_index):
    return nsr.Index.open(served_index)


def alike(first, second):
    assert [hit.id for hit in first] == [hit.id for hit in second]
    assert [hit.score for hit in first] == pytest.approx([hit.score for hit in second], abs=1e-5)
    assert [hit.metadata for hit in first] == [hit.metadata for hit in second]
    assert [hit.group for hit in first] == [hit.group for hit in second]
    assert first.query == second.query
    assert first.report.corpus == second.report.corpus


def test_searches_as_the_index_does(remote, index, served_data):
    queries = served_data[0].queries
    alike(remote.search(queries[0], 4), index.search(queries[0], 4))
    for mine, theirs in zip(remote.search(queries[:3], 4), index.search(queries[:3], 4), strict=True):
        alike(mine, theirs)
    alike(remote.search(queries[0], 4, where={"role": "GK"}), index.search(queries[0], 4, where="role = 'GK'"))
    mine, theirs = (place.search(id="corpus-000002", events=(1, 9), k=3) for place in (remote, index))
    assert [hit.id for hit in mine] == [hit.id for hit in theirs]
    assert remote.search(queries[0], 2).sequences == index.get([hit.id for hit in index.search(queries[0], 2)])


def test_takes_frames_as_the_index_does(remote, index, served_data):
    query = served_data[0].queries[0]
    frame = pd.DataFrame(
        {"who": query.id, "when": query.times, "what": [query.mark_names[mark] for mark in query.marks]}
    )
    columns = {"id": "who", "time": "when", "mark": "what"}
    mine, theirs = (place.search(frame, k=3, columns=columns)[0] for place in (remote, index))
    assert [hit.id for hit in mine] == [hit.id for hit in theirs]


#: Verbs of `Index` that work on its files or inside its process, and so have no place in a client.
OF_A_FOLDER = {
    "create",
    "open",
    "view",
    "search_options",
    "embed_queries",
    "compact",
    "sync",
    "check",
    "refresh",
    "watch",
}
OF_A_FOLDER |= {"model", "card", "name", "short_name"}
OWN = {
    "search": {"relevant", "not_relevant"},
    "add": {"progress"},
    "upsert": {"progress"},
}
LOCAL = {"add": {"embedder", "at_once"}}  # they compute where the caller is; a server embeds what it is sent itself


def test_the_client_has_the_verbs_of_the_index_with_its_options_and_defaults():
    """A verb or an option that is added to one of them must be added to the other, or named above."""
    verbs = {name for name in vars(nsr.Index) if not name.startswith("_")} - OF_A_FOLDER
    assert {"search", "add", "upsert", "remove", "get", "unknown", "info"} == verbs
    assert verbs <= set(vars(nsr.RemoteIndex))
    for verb in verbs:
        mine, theirs = (inspect.signature(getattr(owner, verb)).parameters for owner in (nsr.RemoteIndex, nsr.Index))
        described = [
            {name: (one.kind, one.default) for name, one in given.items() if name not in left_out.get(verb, ())}
            for given, left_out in ((mine, OWN), (theirs, LOCAL))
        ]
        assert described[0] == described[1], verb
        returned = [inspect.signature(getattr(owner, verb)).return_annotation for owner in (nsr.RemoteIndex, nsr.Index)]
        assert returned[0] == returned[1], verb


def test_options_of_a_search_do_what_they_do_in_the_index(remote, index, served_data):
    query = served_data[0].queries[0]
    for options in ({"fraction": 0.5}, {"at_least": 20}, {"exhaustive": True}, {"expand": True}):
        mine, theirs = (place.search(query, 5, **options) for place in (remote, index))
        alike(mine, theirs)
        assert mine.report == theirs.report
        assert mine.asked == theirs.asked
    slow = EventSequences.from_lists([(1e6 * query.times, query.marks)], mark_names=query.mark_names)
    for verb in (remote.search, remote.add, remote.upsert):
        with pytest.raises(nsr.UserError, match="times longer than"):
            verb(slow, strict=True)
    for options, said in (
        ({"fraction": 2.0}, "fraction"),
        ({"at_least": 0}, "at_least"),
        ({"k": 2000}, "at most 1,000"),
    ):
        with pytest.raises(nsr.UserError, match=said):
            remote.search(query, **options)


def test_gets_and_counts_as_the_index_does(remote, index):
    ids = ["corpus-000004", "corpus-000001"]
    assert remote.get(ids) == index.get(ids)
    assert len(remote) == len(index)
    assert remote.info()["model"] == index.info()["model"]
    with pytest.raises(nsr.UserError, match="holds no sequence 'nobody'"):
        remote.get("nobody")


def test_adds_upserts_and_removes(remote):
    rng = np.random.default_rng(0)
    pairs = [(np.cumsum(rng.exponential(1, 6)), rng.integers(0, 5, 6)) for _ in range(20)]
    more = EventSequences.from_lists(pairs, ids=[f"r{at}" for at in range(20)])
    sent: list[int] = []
    done = remote.add(iter([more[:12], more[12:]]), progress=sent.append)
    assert (done.added, sent) == (20, [12, 20])
    assert remote.add(more).already_there == 20
    assert remote.upsert(more).replaced == 20
    assert remote.unknown(["r0", "nobody"]) == ["nobody"]
    assert remote.remove([one.id for one in more]) == 20


def test_marks_are_checked_before_anything_is_sent(remote):
    strange = EventSequences.from_lists([([0.0], [0])], ids=["x"], mark_names=("never met",))
    with pytest.raises(nsr.DataError, match="never met"):
        remote.add(strange)
    with pytest.raises(nsr.DataError, match="never met"):
        remote.search(strange)


def test_feedback_is_stored(remote, server, served_data):
    query = served_data[0].queries[0]
    assert remote.feedback(query, {"corpus-000001": True, "corpus-000002": False}, user="anna") == 2
    assert remote.feedback("corpus-000000", {"corpus-000001": None}) == 1
    stored = server.get("/v1/feedback?limit=1000")["judgements"]
    assert [one["relevant"] for one in stored[-3:]] == [True, False, None]
    assert stored[-3]["user"] == "anna"
    assert stored[-3]["query"]["times"] == query.times.tolist()
    first = server.get("/v1/feedback?limit=1")
    assert server.get(f"/v1/feedback?limit=1000&cursor={first['next']}")["judgements"] == stored[1:]
    with pytest.raises(nsr.UserError, match="holds no sequence"):
        remote.feedback(query, {"nobody": True})


def test_the_command_line_takes_an_address(server, served_index, served_data, tmp_path):
    queries = tmp_path / "queries.parquet"
    nsr.write(served_data[0].queries[:2], queries)
    local, remote = (
        call("search", place, str(queries), "-k", "3", "--format", "trec") for place in (str(served_index), server.url)
    )
    assert remote.returncode == 0, remote.stderr
    assert [line.split()[2] for line in remote.stdout.splitlines()] == [
        line.split()[2] for line in local.stdout.splitlines()
    ]
    assert call("search", server.url, "--id", "corpus-000003").returncode == 0
    added = call("index", "add", server.url, str(queries))
    assert (added.returncode, "2 sequences added" in added.stderr) == (0, True), added.stderr
    assert call("index", "remove", server.url, *(one.id for one in served_data[0].queries[:2])).returncode == 0
    said = call("index", "info", server.url).stdout
    assert "histogram" in said
    assert "rerank: none\n" in said
    refused = call("index", "check", server.url)
    assert refused.returncode == 2
    assert "files of an index" in refused.stderr


def test_the_command_line_knows_the_columns_and_dates_of_a_servers_training_data(tmp_path):
    rows = [
        f"u{user},{1 + user % 9:02}.03.2024 {9 + hour:02}:07,{('view', 'buy')[user % 2]},k{user % 2}"
        for user in range(24)
        for hour in range(6)
    ]
    dates = ("--time-format", "%d.%m.%Y %H:%M")
    raw, data, model, index = (str(tmp_path / name) for name in ("events.csv", "data", "model", "index"))
    (tmp_path / "events.csv").write_text("\n".join(["USER,WHEN,ACTION,KIND", *rows]) + "\n")
    columns = [f"--column={word}" for word in ("id=USER", "time=WHEN", "mark=ACTION", "group=KIND")]
    for words in (
        ("data", "prepare", "--from", raw, *columns, *dates, "--out", data),
        ("fit", data, "--model", "histogram", "--out", model),
        ("index", "create", model, data, "--out", index),
    ):
        assert call(*words).returncode == 0
    with RunningServer(tmp_path / "index", log=tmp_path / "log") as running:
        done = call("search", running.url, raw, "-k", "1", "--limit", "1")
        assert done.returncode == 0, done.stderr
        assert "columns as in 'data prepare' of the training data: --column id=USER --column time=WHEN" in done.stderr
        assert "query u0 (k0)" in done.stdout
        assert running.get("/v1/index")["time_format"] == dates[1]
        added = call("index", "add", running.url, raw)
        assert (added.returncode, "already there" in added.stderr) == (0, True), added.stderr


def test_no_server_is_one_line(monkeypatch):
    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.001)
    with pytest.raises(nsr.UserError, match="is the server running"):
        nsr.connect("http://127.0.0.1:9")
    with pytest.raises(nsr.UserError, match="not the address"):
        nsr.connect("127.0.0.1:9")
    assert url_of("http:/127.0.0.1:8765") == "http://127.0.0.1:8765"
    assert url_of("folder/http") is None


@pytest.mark.parametrize(("method", "tries"), [("GET", 3), ("judge", 1)])
def test_calls_that_may_be_repeated_are_repeated_when_the_server_is_busy(monkeypatch, method, tries):
    seen = []

    class Busy(BaseHTTPRequestHandler):
        def answer(self):
            seen.append(self.path)
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(503 if len(seen) < 3 else 200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = answer

        def log_message(self, *_):
            pass

    monkeypatch.setattr(transport, "_FIRST_PAUSE", 0.001)
    with HTTPServer(("127.0.0.1", 0), Busy) as busy:
        threading.Thread(target=busy.serve_forever, daemon=True).start()
        calls = transport.Transport(f"http://127.0.0.1:{busy.server_port}", None, 5.0)
        if method == "GET":
            assert calls.call("GET", "/v1/index") == {}
        else:
            with pytest.raises(transport.ServerError, match="503"):
                calls.call("POST", "/v1/feedback", b"{}", repeatable=False)
        busy.shutdown()
    assert len(seen) == tries


def test_over_tls_with_a_self_model_that_explains(tmp_path, served_data):
    """One server with everything: a model that explains, HTTPS, a client that checks the certificate."""
    import trustme
    import urllib3

    data, corpus = served_data
    model = nsr.SelfAttention().fit(data.queries, data.corpus, data.relevance, max_seconds=1)
    index = nsr.Index.create(model, tmp_path / "index", corpus, window_events=20, window_step=10)
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    made.private_key_pem.write_to_path(tmp_path / "key.pem")
    for at, part in enumerate(made.cert_chain_pems):
        part.write_to_path(tmp_path / "cert.pem", append=at > 0)
    options = ["--tls-cert", str(tmp_path / "cert.pem"), "--tls-key", str(tmp_path / "key.pem")]
    with RunningServer(tmp_path / "index", *options, log=tmp_path / "log") as running:
        assert running.url.startswith("https://")
        with pytest.raises(nsr.UserError, match="cannot be reached"):
            transport.Transport(running.url, None, 10.0, tries=1).call("GET", "/v1/index")
        calls = transport.Transport(running.url, None, 30.0)
        calls._pool = urllib3.PoolManager(ca_certs=str(tmp_path / "ca.pem"), retries=False)
        remote = nsr.RemoteIndex(calls)
        query = data.queries[0]
        hits = remote.search(query, 3)
        assert [(hit.id, hit.window, hit.offset, hit.stop) for hit in hits] == [
            (hit.id, hit.window, hit.offset, hit.stop) for hit in index.search(query, 3)
        ]
        why, same = remote.explain(query, hits[0]), nsr.explain(index.model, query, index.get(hits[0].window)[0])
        assert why.score == pytest.approx(same.score, abs=1e-5)
        np.testing.assert_allclose(why.matrix, same.matrix, atol=1e-4)
        whole = remote.get(hits[0].id)[0]
        assert len(whole) == len(data.corpus[data.corpus.ids.to_pylist().index(hits[0].id)])
        reply = calls.call("POST", "/v1/search", b'{"query": {"id": "corpus-000000"}, "k": 2, "explain": true}')
        first = reply["results"][0]["hits"][0]
        assert sum(first["explanation"]["parts"].values()) == pytest.approx(first["score"], abs=1e-4)
        calls._pool.clear()  # an open TLS connection would be waited for when the server ends
