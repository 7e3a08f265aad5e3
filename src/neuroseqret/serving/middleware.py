"""What happens to every request: an id, the gate, limits, headers, the counters and the log."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from neuroseqret.serving import problems
from neuroseqret.serving.gate import Gate
from neuroseqret.serving.metrics import Metrics
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.settings import ServerSettings
from neuroseqret.serving.telemetry import Tracer

#: Only what this server sends may run or load; nothing may frame it. Elements of the page are placed by styles.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; media-src 'self' blob:; worker-src 'self' blob:; manifest-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]
_SECURE = (b"strict-transport-security", b"max-age=31536000")
_PRIVATE = (b"cache-control", b"no-store")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_log = logging.getLogger("neuroseqret.server")


class Surroundings:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics, tracer: Tracer) -> None:
        self.app, self.settings, self.metrics, self.tracer = app, settings, metrics, tracer
        self.gate = Gate(settings)
        self.active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, headers = time.perf_counter(), Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
        state = scope.setdefault("state", {})
        state |= {"request_id": request_id, "scopes": [], "caller": "unknown", "gate": self.gate}
        more = [*HEADERS, (b"x-request-id", request_id.encode()), *([_SECURE] if self.settings.tls_cert else [])]
        if scope["path"].startswith("/v1"):
            more.append(_PRIVATE)
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        self.active += 1
        self.metrics.active.set(self.active)
        try:
            with self.tracer.span(scope, state):
                await self._answered(scope, receive, sending)
        except Exception as error:
            _log.exception("a request failed", extra={"fields": {"request": request_id}})
            if not status:  # otherwise half of an answer is sent already; all that is left is to end the connection
                await problems.response(problems.as_problem(error), request_id)(scope, receive, sending)
        finally:
            self.active -= 1
            self._note(scope, status, time.perf_counter() - begun)

    async def _answered(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            caller = self.gate.passed(scope)
            scope["state"] |= {"caller": caller.name, "scopes": list(caller.scopes), "key": caller.key}
            if self.active > self.settings.limits.concurrent and not scope["path"].startswith("/health"):
                raise Problem(503, "too many requests at once; try again in a moment", retry_after=1)
        except Problem as problem:
            self.metrics.rejects.labels(str(problem.status)).inc()
            await problems.response(problem, scope["state"]["request_id"])(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        """Count and log a request."""
        route = getattr(scope.get("route"), "path", None) or "page"
        method = scope["method"] if scope["method"] in ("GET", "HEAD", "POST", "PUT", "DELETE") else "other"
        self.metrics.active.set(self.active)
        self.metrics.requests.labels(method, route, str(status)).inc()
        self.metrics.latency.labels(route).observe(seconds)
        if status in (408, 413, 415, 422):
            self.metrics.rejects.labels(str(status)).inc()
        state = scope["state"]
        fields = {
            "request": state["request_id"],
            "caller": state["caller"],
            "method": method,
            "path": scope["path"][:200],
            "status": status,
            "milliseconds": round(1000 * seconds, 2),
            "client": (scope.get("client") or ["unknown"])[0],
        }
        quiet = route.startswith(("/health", "/metrics")) or route == "page"
        _log.log(logging.DEBUG if quiet else logging.INFO, "request", extra={"fields": fields})
