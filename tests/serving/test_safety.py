"""Keys, limits and hostile callers."""

from __future__ import annotations

import json
import resource
import socket
import threading
import time
from contextlib import suppress

import pytest

from cli.calling import call
from neuroseqret.errors import UserError
from neuroseqret.serving import keys
from neuroseqret.serving.client import connect
from neuroseqret.serving.limits import Bucket, Quotas, RateLimit, SharedCounts
from neuroseqret.serving.problems import Problem
from serving.running_server import RunningServer

QUERY = {"query": {"times": [0, 1], "marks": [0, 1]}}
PATIENCE = 15.0  # who waits for idle callers waits until the server sends them away, after 20 s
LIMITS = (
    "k=20",
    "queries=4",
    "events=50",
    "json_bytes=20000",
    "body_bytes=40000",
    "where_characters=100",
    "compared=40",
    "idle_seconds=1",
    "upload_seconds=2",
)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    return tmp_path_factory.mktemp("keys") / "keys.json"


@pytest.fixture(scope="module")
def guarded(served_index, key_file, tmp_path_factory):
    """A server with keys and small limits, its keys by name, and its audit log."""
    made = {
        "reader": keys.create(key_file, "reader", ("read",))[0],
        "writer": keys.create(key_file, "writer", ("read", "write"), quota=2)[0],
        "admin": keys.create(key_file, "admin", keys.SCOPES)[0],
        "late": keys.create(key_file, "late", ("read",), days=-1)[0],
        "slow": keys.create(key_file, "slow", ("read",), rate=1.0)[0],
    }
    folder = tmp_path_factory.mktemp("guarded")
    options = [word for limit in LIMITS for word in ("--limit", limit)]
    options += ["--rerank", str(served_index / "model")]
    options += ["--keys", str(key_file), "--audit", str(folder / "audit"), "--host", "0.0.0.0"]
    with RunningServer(served_index, *options, log=folder / "log") as running:
        yield running, made, folder / "audit"


def as_key(guarded, name):
    running, made, _ = guarded
    return lambda *given, **more: running.call(*given, **{"authorization": f"Bearer {made[name]}", **more})


def test_scopes_decide_what_a_key_may_do(guarded):
    one = {"sequences": [{"id": "w1", "times": [0, 1], "marks": [0, 1]}]}
    reader, writer, admin = (as_key(guarded, name) for name in ("reader", "writer", "admin"))
    assert reader("POST", "/v1/search", QUERY)[0] == 200
    assert reader("POST", "/v1/sequences", one)[0] == 403
    assert reader("DELETE", "/v1/sequences/w1")[0] == 403
    assert reader("GET", "/metrics")[0] == 403
    assert reader("GET", "/v1/index")[1]["scopes"] == ["read"]
    assert writer("POST", "/v1/sequences", one)[0] == 200
    assert writer("DELETE", "/v1/sequences/w1")[0] == 200
    status, problem, headers = writer("POST", "/v1/sequences", one)
    assert (status, "of the day" in problem["detail"]) == (429, True)
    assert int(headers["retry-after"]) > 80_000
    assert b"neuroseqret_requests_total" in admin("GET", "/metrics")[1]


def test_without_a_valid_key_nothing_is_told(guarded, monkeypatch):
    monkeypatch.delenv("NEUROSEQRET_KEY", raising=False)
    running, made, _ = guarded
    altered = made["reader"][:30] + ("a" if made["reader"][30] != "a" else "b") + made["reader"][31:]
    for header in (
        "",
        "Bearer",
        "Bearer nonsense",
        f"Bearer {made['late']}",
        f"Bearer {altered}",
        "Basic x",
    ):
        status, problem, headers = running.call("POST", "/v1/search", QUERY, authorization=header)
        assert status == 401, problem
        assert headers["www-authenticate"] == "Bearer"
    with pytest.raises(UserError, match=r"needs a key.*connect\(\.\.\., key=KEY\).*NEUROSEQRET_KEY"):
        connect(running.url)
    assert running.call("GET", "/health/live")[0] == 200
    assert running.call("GET", "/")[0] == 200


def test_a_wrong_method_is_told_which_methods_there_are(server):
    for method, path, allowed in (
        ("GET", "/v1/search", "POST"),
        ("PUT", "/v1/search", "POST"),
        ("GET", "/v1/explain", "POST"),
        ("POST", "/v1/index", "GET"),
        ("DELETE", "/v1/sequences", "GET, POST, PUT"),
        ("PUT", "/v1/sequences/s1", "DELETE, GET"),
        ("DELETE", "/v1/feedback", "GET, POST"),
        ("POST", "/health/live", "GET"),
        ("POST", "/index.html", "GET, HEAD"),
    ):
        status, problem, headers = server.call(method, path)
        assert (status, headers.get("allow")) == (405, allowed), (method, path, problem)
        assert headers["content-type"] == "application/problem+json"
        assert problem["detail"] == f"this address takes {allowed.replace(', ', ' or ')}, not {method}"
    status, problem, headers = server.call("GET", "/v1/nothing")
    assert (status, "allow" in headers) == (404, False)
    assert "nothing at this address" in problem["detail"]


def test_a_revoked_key_ends_while_the_server_runs(guarded, key_file):
    running, _, _ = guarded
    key, made = keys.create(key_file, "leaving", ("read",))
    time.sleep(1.2)
    assert running.call("GET", "/v1/index", authorization=f"Bearer {key}")[0] == 200
    keys.revoke(key_file, made.id)
    time.sleep(1.2)
    assert running.call("GET", "/v1/index", authorization=f"Bearer {key}")[0] == 401


def test_a_key_that_asks_too_often_is_told_when_to_come_back(guarded):
    answers = [as_key(guarded, "slow")("GET", "/v1/index") for _ in range(6)]
    refused = [headers for status, _, headers in answers if status == 429]
    assert answers[0][0] == 200
    assert refused
    assert all(int(headers["retry-after"]) >= 1 for headers in refused)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({**QUERY, "k": 21}, 422, "at most 20"),
        ({"queries": [QUERY["query"]] * 5}, 422, "at most 4"),
        ({"query": {"times": list(range(51)), "marks": [0] * 51}}, 422, "at most 50"),
        ({**QUERY, "exhaustive": True}, 422, "at most 40 are allowed"),
        ({**QUERY, "exhaustive": True, "rerank": True}, 422, "at most 40 are allowed"),
        ({**QUERY, "at_least": 41}, 422, "compares with 41 sequences"),
        ({**QUERY, "where": "age = " + "1" * 100}, 422, "more than 100 characters"),
        ({**QUERY, "where": {"age": "1" * 100}}, 422, "more than 100 characters"),
        ({**QUERY, "fields": ["x" * 30_000]}, 413, "more than 20,000 bytes"),
    ],
)
def test_limits_refuse_with_what_to_do(guarded, body, status, said):
    found, problem, _ = as_key(guarded, "reader")("POST", "/v1/search", body)
    assert found == status, problem
    assert said in problem["detail"]


def test_a_chunked_body_is_counted_while_it_arrives(guarded):
    running, made, _ = guarded
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(
            b"POST /v1/sequences HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\n"
            b"Authorization: Bearer " + made["admin"].encode() + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        answer = b""
        try:
            for _ in range(100):
                client.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
        except OSError:
            pass
        while b"\r\n\r\n" not in answer and (part := client.recv(4096)):
            answer += part
    assert b" 413 " in answer.split(b"\r\n")[0]


def test_half_a_body_ends_with_408_and_writes_nothing(guarded):
    running, made, _ = guarded
    line = json.dumps({"id": "half", "times": [0], "marks": [0]}).encode()
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(
            b"POST /v1/sequences HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 5000\r\n"
            b"Authorization: Bearer " + made["admin"].encode() + b"\r\n\r\n" + line + b"\n"
        )
        assert b" 408 " in client.recv(4096).split(b"\r\n")[0]
    assert as_key(guarded, "admin")("GET", "/v1/sequences/half")[0] == 404


def test_a_body_that_trickles_in_ends_with_408(guarded):
    running, made, _ = guarded
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
        client.sendall(
            b"POST /v1/sequences HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-ndjson\r\nContent-Length: 5000\r\n"
            b"Authorization: Bearer " + made["admin"].encode() + b"\r\n\r\n"
        )
        client.settimeout(0.3)
        answer, begun = b"", time.monotonic()
        while not answer and time.monotonic() - begun < 15:
            client.sendall(b" ")
            with suppress(TimeoutError):
                answer = client.recv(4096)
        client.settimeout(5)
        while b"}" not in answer and (part := client.recv(4096)):  # the body may come after the head
            answer += part
    assert b" 408 " in answer.split(b"\r\n")[0]
    assert b"within 2 seconds" in answer


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST /v1/search HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 70_000, 431),
        (b"GET /v1/index HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 7_000, 431),
        (b"hello, is this a server?\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS
        (b"GET /v1/index HTTP/1.1\r\nHo", None),
        (b"", None),
    ],
)
def test_heads_that_are_endless_wrong_or_late_end_the_connection(guarded, sent, status):
    with socket.create_connection(("127.0.0.1", guarded[0].port), timeout=20) as client:
        client.sendall(sent)
        answer, part = b"", b"more"
        while part:
            part = client.recv(4096)  # ends when the server closes the connection
            answer += part
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (int(head.split()[1]) if answer else None) == status
    assert status is None or json.loads(body)["status"] == status


def test_callers_that_go_away_leave_nothing_behind(guarded):
    running, made, _ = guarded
    head = b"Host: x\r\nAuthorization: Bearer " + made["admin"].encode() + b"\r\n"
    query = json.dumps(QUERY).encode()
    line = json.dumps({"id": "gone", "times": [0], "marks": [0]}).encode()
    for _ in range(12):  # more than there are places for uploads
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
            client.sendall(
                b"POST /v1/search HTTP/1.1\r\nContent-Type: application/json\r\n"
                + head
                + b"Content-Length: %d\r\n\r\n" % len(query)
                + query
            )
        with socket.create_connection(("127.0.0.1", running.port), timeout=20) as client:
            client.sendall(
                b"POST /v1/sequences HTTP/1.1\r\nContent-Type: application/x-ndjson\r\n"
                + head
                + b"Content-Length: 5000\r\n\r\n"
                + line
                + b"\n"
            )
    admin = as_key(guarded, "admin")
    assert admin("GET", "/v1/sequences/gone")[0] == 404
    one = {"sequences": [{"id": "came", "times": [0], "marks": [0]}]}
    assert admin("POST", "/v1/sequences", one)[0] == 200
    assert admin("DELETE", "/v1/sequences/came")[0] == 200
    assert "a request failed" not in running.log.read_text()


def test_a_caller_that_does_not_read_does_not_stop_others(server):
    clients = []
    try:
        for _ in range(16):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(20)
            client.connect(("127.0.0.1", server.port))
            client.sendall(b"GET /v1/sequences?limit=1000&fields=events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 4)
            clients.append(client)
        begun = time.monotonic()
        assert server.call("POST", "/v1/search", QUERY)[0] == 200
        assert time.monotonic() - begun < PATIENCE
    finally:
        for client in clients:
            client.close()


def test_idle_callers_do_not_stop_others(server):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    idle = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(1000)]
    try:
        for at, client in enumerate(idle):
            if at % 2:
                client.sendall(b"POST /v1/search HTTP/1.1\r\nHost: x\r\nContent-Le")
        begun = time.monotonic()
        assert server.call("POST", "/v1/search", QUERY)[0] == 200
        assert time.monotonic() - begun < PATIENCE
    finally:
        for client in idle:
            client.close()


def test_the_audit_log_says_who_wrote(guarded):
    as_key(guarded, "admin")("POST", "/v1/sequences", {"sequences": [{"id": "au", "times": [0], "marks": [0]}]})
    as_key(guarded, "admin")("DELETE", "/v1/sequences/au")
    lines = [json.loads(line) for line in guarded[2].read_text().splitlines()]
    mine = [(line["audit"], line["sequences"]) for line in lines if line["caller"] == "admin"]
    assert mine[-2:] == [("add", 1), ("remove", 1)]


def test_every_answer_carries_the_security_headers(server):
    for path in ("/", "/v1/index", "/v1/nothing", "/health/live"):
        _, _, headers = server.call("GET", path)
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers
    assert server.call("GET", "/v1/index")[2]["cache-control"] == "no-store"
    assert server.call("GET", "/v1/index", **{"x-request-id": "mine-1"})[2]["x-request-id"] == "mine-1"
    assert server.call("GET", "/v1/index", **{"x-request-id": "a b"})[2]["x-request-id"] != "a b"


def test_without_keys_other_sites_cannot_use_a_visitors_browser(server):
    assert server.call("GET", "/v1/index", host="evil.example")[0] == 421
    assert server.call("POST", "/v1/search", QUERY, origin="http://evil.example")[0] == 403
    assert server.call("POST", "/v1/search", QUERY, origin=server.url)[0] == 200


def test_paths_do_not_leave_the_page(server):
    for path in ("/../keys.py", "/..%2f..%2fkeys.py", "/%2e%2e/keys.py", "//etc/passwd"):
        assert server.call("GET", path)[0] in (400, 404)


def test_ids_with_odd_characters_are_just_ids(server):
    id = "../a b/<script>?%\u00e9"
    one = {"sequences": [{"id": id, "times": [0, 1], "marks": [0, 1]}]}
    assert server.post("/v1/sequences", one)["added"] == 1
    from urllib.parse import quote

    assert server.get("/v1/sequences/" + quote(id, safe=""))["id"] == id
    assert server.call("DELETE", "/v1/sequences/" + quote(id, safe=""))[0] == 200


def test_beyond_loopback_only_with_keys(served_index):
    done = call("serve", str(served_index), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 2
    assert "neuroseqret keys create" in done.stderr


def test_keys_by_the_command_line(tmp_path):
    file = tmp_path / "keys.json"
    made = call("keys", "create", str(file), "--name", "anna", "--scope", "write", "--scope", "read", "--days", "3")
    assert made.stdout.startswith("nsr_")
    assert made.stdout.strip().split("_", 2)[2] not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    assert "anna" in call("keys", "list", str(file)).stdout
    assert call("keys", "revoke", str(file), "bob").returncode == 2
    assert call("keys", "revoke", str(file), "anna").returncode == 0
    assert keys.read(file) == []
    assert call("keys", "create", str(file), "--name", "x", "--scope", "all").returncode == 2


def test_a_bucket_fills_with_time():
    now = [0.0]
    bucket = Bucket(2.0, 3.0, clock=lambda: now[0])
    assert [bucket.take() for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert bucket.take() == 0
    assert bucket.take() > 0


def test_buckets_of_forgotten_callers_do_not_pile_up():
    limit = RateLimit(1.0, 2.0)
    for caller in range(10_050):
        limit.check(str(caller))
    assert len(limit.counts) <= 10_000


def test_a_quota_begins_anew_after_a_day():
    now = [0.0]
    quotas = Quotas(clock=lambda: now[0])
    quotas.count("a", 5)
    with pytest.raises(Problem) as caught:
        quotas.check("a", 5)
    assert caught.value.status == 429
    now[0] = 86_401
    quotas.check("a", 5)


def test_keys_made_at_the_same_time_are_all_kept(tmp_path):
    threads = [threading.Thread(target=keys.create, args=(tmp_path / "k", f"n{at}", ("read",))) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys.read(tmp_path / "k")) == 8


def test_processes_of_one_server_count_together(tmp_path):
    """Two handles of one file stand for two processes: what one counts, the other knows."""
    one, two = (RateLimit(1.0, 2.0, SharedCounts(tmp_path / "counts", "rates")) for _ in range(2))
    one.check("a")
    two.check("a")
    for limit in (one, two):
        with pytest.raises(Problem, match="requests per second"):
            limit.check("a")
    one.check("b")
    first, second = (Quotas(counts=SharedCounts(tmp_path / "counts", "quotas")) for _ in range(2))
    first.count("a", 3)
    second.count("a", 2)
    for quotas in (first, second):
        quotas.check("a", 6)
        with pytest.raises(Problem, match="of the day"):
            quotas.check("a", 5)


def test_a_rate_holds_for_all_workers_together(served_index, tmp_path):
    key = keys.create(tmp_path / "keys", "slow", ("read",), rate=0.5)[0]
    options = ("--workers", "2", "--keys", str(tmp_path / "keys"))
    with RunningServer(served_index, *options, key=key, log=tmp_path / "log") as running:
        while (first := running.call("GET", "/health/ready"))[0] != 200:
            assert first[0] == 503
        statuses = [running.call("POST", "/v1/search", QUERY)[0] for _ in range(12)]
    assert 1 <= statuses.count(200) <= 5, statuses  # one at once, and one every two seconds
