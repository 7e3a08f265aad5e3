"""A server in this process, without a network: an input is a request, and the answer is data or a problem document.

The first line of an input is the method, the address and the content-type; the rest is the body.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlencode

import pyarrow as pa
import schemathesis
from hypothesis import strategies as st
from pyarrow import parquet
from schemathesis.core import NOT_SET

from neuroseqret import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.models.base import Embedder
from neuroseqret.serving.app import make_app
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.service import Service
from neuroseqret.serving.settings import ServerSettings
from neuroseqret.serving.uploads import ARROW, JSON, NDJSON, PARQUET

_METHOD, _TEXT = re.compile(rb"[A-Z]{1,16}"), re.compile(rb"[\x21-\x7e]*")  # what the HTTP parser lets through
EVENTS = {"times": [0.0, 1.5, 4.0], "marks": [0, 1, 0]}


class Served:
    """An index behind the app of the server."""

    def __init__(self, folder: Path, model: Embedder, corpus: EventSequences) -> None:
        Index.create(model, folder, corpus)
        settings = ServerSettings(index=folder, window=0.0, rate=0.0, refresh_seconds=3600.0)
        service = Service(Index.open(folder), settings, Metrics())
        service.warm_up()
        self.app, self._loop, self._failures = make_app(service), asyncio.new_event_loop(), Failures()
        log = logging.getLogger("neuroseqret.server")
        log.handlers, log.propagate = [self._failures], False

    def ask(self, data: bytes) -> None:
        """Send a request; a refusal is a `UserError`, anything but an answer in order an `AssertionError`."""
        line, _, body = data.partition(b"\n")
        method, address, kind = (*line.split(b" ", 2), b"", b"")[:3]
        if not (_METHOD.fullmatch(method) and _TEXT.fullmatch(address) and _TEXT.fullmatch(kind)):
            raise UserError("not a line that reaches the app")
        self._failures.said.clear()
        status, headers, content = self._loop.run_until_complete(self._answer(method, address, kind, body))
        assert status < 500, "\n".join([f"status {status}", *self._failures.said])
        if status < 400:
            return
        assert headers[b"content-type"].startswith(b"application/problem+json"), content[:300]
        assert method == b"HEAD" or json.loads(content)["detail"], content[:300]
        raise UserError("refused")

    async def _answer(
        self, method: bytes, address: bytes, kind: bytes, body: bytes
    ) -> tuple[int, dict[bytes, bytes], bytes]:
        path, _, query = address.partition(b"?")
        headers = [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method.decode(),
            "scheme": "http",
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [*headers, (b"content-type", kind)] if kind else headers,
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        waiting, sent = [{"type": "http.request", "body": body, "more_body": False}], list[dict[str, Any]]()

        async def receive() -> dict[str, Any]:
            return waiting.pop() if waiting else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]), b"".join(one.get("body", b"") for one in sent)

    def requests(self) -> st.SearchStrategy[bytes]:
        """Return requests that the OpenAPI document allows, as inputs."""
        schema = schemathesis.openapi.from_dict(self.app.openapi())
        return st.one_of([found.ok().as_strategy().map(_as_input) for found in schema.get_all_operations()])


class Failures(logging.Handler):
    """Keeps the reasons of requests that failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a traceback."""
        if record.exc_info is not None:
            self.said += traceback.format_exception(*record.exc_info)


def _as_input(case: Any) -> bytes:
    """Return a request of schemathesis as an input."""
    query = "" if not case.query else "?" + urlencode(case.query, doseq=True, errors="replace")
    body = b"" if case.body is NOT_SET else case.body
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    line = f"{case.method} {case.formatted_path}{query} {case.media_type or ''}"
    return line.encode("ascii", "replace") + b"\n" + body


def seeds(corpus: EventSequences) -> tuple[bytes, ...]:
    """Return requests of every verb and content-type. All are answered but `explain`, which a histogram cannot."""
    table, arrow, columns = corpus[:2].to_arrow(), pa.BufferOutputStream(), pa.BufferOutputStream()
    with pa.ipc.new_stream(arrow, table.schema) as writer:
        writer.write_table(table)
    parquet.write_table(table, columns)
    one, k = {"id": "n", **EVENTS, "group": "x", "metadata": {"age": 3}}, {"k": 3}
    bodies: list[tuple[str, str, Any]] = [
        ("POST /v1/search", JSON, {"query": EVENTS, **k}),
        ("POST /v1/search", JSON, {"queries": [{"id": "a", "events": [0, 1]}, EVENTS], "expand": True, **k}),
        ("POST /v1/search", JSON, {"query": {"id": "a"}, "where": "group = 'x' and id <> 'b'", "fields": ["events"]}),
        ("POST /v1/explain", JSON, {"query": EVENTS, "hits": ["b"]}),
        ("POST /v1/embed", JSON, {"sequences": [one]}),
        ("POST /v1/sequences", JSON, {"sequences": [one]}),
        ("PUT /v1/sequences", NDJSON, json.dumps(one).encode() + b"\n" + json.dumps(one | {"id": "m"}).encode()),
        ("POST /v1/sequences?unknown_marks=keep", ARROW, arrow.getvalue().to_pybytes()),
        ("POST /v1/sequences", PARQUET, columns.getvalue().to_pybytes()),
        ("POST /v1/sequences/remove", JSON, {"ids": ["m", "none"]}),
        ("POST /v1/feedback", JSON, {"query": {"id": "a"}, "judgements": [{"id": "b", "relevant": True}]}),
        ("GET /v1/sequences?limit=2&where=group%3D%27x%27&fields=events", "", b""),
        ("GET /v1/sequences/b", "", b""),
    ]
    return tuple(
        f"{line} {kind}\n".encode() + (body if isinstance(body, bytes) else json.dumps(body).encode())
        for line, kind, body in bodies
    )
