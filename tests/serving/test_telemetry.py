"""What a server tells about itself: counters for Prometheus, and spans for OpenTelemetry."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from serving.running_server import RunningServer

QUERY = {"query": {"times": [0, 1], "marks": [0, 1]}}


def test_spans_reach_a_collector_before_the_server_ends(served_index, tmp_path, monkeypatch):
    sent: list[bytes] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self):
            sent.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.server_port}")
        trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
        with RunningServer(served_index, "--telemetry", log=tmp_path / "log") as running:
            headers = {"traceparent": f"00-{trace}-{parent}-01", "x-request-id": "traced"}
            assert running.call("POST", "/v1/search", QUERY, **headers)[0] == 200
        collector.shutdown()
    spans = [
        span
        for body in sent
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (found,) = [span for span in spans if span.trace_id.hex() == trace]
    assert found.name == "POST /v1/search"
    assert found.parent_span_id.hex() == parent
    told = {one.key: one.value.string_value for one in found.attributes}
    assert told == {"neuroseqret.request": "traced", "neuroseqret.caller": "local"}


def counted(server):
    """Return every sample of `/metrics` by name and labels."""
    families = text_string_to_metric_families(server.call("GET", "/metrics")[1].decode())
    return {
        (sample.name.removeprefix("neuroseqret_"), *sorted(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_say_what_was_done(server):
    before = counted(server)
    server.post("/v1/search", {"queries": [QUERY["query"]] * 3})
    assert server.call("POST", "/v1/search", {**QUERY, "k": 0})[0] == 422
    server.post("/v1/sequences", {"sequences": [{"id": "counted", "times": [0], "marks": [0]}]})
    server.call("DELETE", "/v1/sequences/counted")
    after = counted(server)
    grown = {name: value - before.get(name, 0) for name, value in after.items()}
    assert grown["requests_total", "/v1/search", "200", "POST"] == 1
    assert grown["requests_total", "/v1/search", "422", "POST"] == 1
    assert grown["request_seconds_count", "/v1/search"] == 2
    for step in ("wait", "embed", "search", "read", "total"):
        assert grown["step_seconds_count", step] == 1
        assert grown["step_seconds_sum", step] > 0
    assert grown["batch_queries_sum",] == 3
    assert grown["rejects_total", "422"] == 1
    assert (grown["sequences_written_total", "add"], grown["sequences_written_total", "remove"]) == (1, 1)
    assert after["sequences",] >= 80
    assert after["commits_seen_total",] >= 1
