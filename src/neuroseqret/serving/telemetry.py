"""Spans for OpenTelemetry, one per request, if the server was asked for them and the extra is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from starlette.types import Scope

from neuroseqret.errors import MissingExtraError


class Tracer:
    """Makes spans, or nothing at all. The exporter is set by OpenTelemetry's own variables (`OTEL_EXPORTER_...`)."""

    def __init__(self, wanted: bool) -> None:
        self._provider: Any = _provider() if wanted else None
        self._tracer = None if self._provider is None else self._provider.get_tracer("neuroseqret.serving")

    def close(self) -> None:
        """Send the spans that wait; the signal that ends the server leaves no time for it later."""
        if self._provider is not None:
            self._provider.shutdown()

    @contextmanager
    def span(self, scope: Scope, state: dict[str, Any]) -> Iterator[None]:
        """Surround a request with a span that goes on from the caller's, if the caller has one."""
        if self._tracer is None:
            yield
            return
        from opentelemetry.propagate import extract

        carrier = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._tracer.start_as_current_span(f"{scope['method']} request", context=extract(carrier)) as span:
            yield
            span.update_name(f"{scope['method']} {getattr(scope.get('route'), 'path', 'page')}")
            span.set_attribute("neuroseqret.request", state["request_id"])
            span.set_attribute("neuroseqret.caller", state["caller"])


def _provider() -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError as error:
        raise MissingExtraError("OpenTelemetry", "telemetry", "--telemetry") from error
    provider = TracerProvider(resource=Resource.create({"service.name": "neuroseqret"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
