"""`/health/live`, `/health/ready` and `/metrics`: for whoever runs the server."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from neuroseqret.serving import replies
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.requests import service_of

router = APIRouter(tags=["operation"])


@router.get("/health/live")
async def live() -> Response:
    """Answer as long as the process runs."""
    return replies.reply({"status": "live"})


@router.get("/health/ready")
async def ready(request: Request) -> Response:
    """Answer 200 if searches can be answered, 503 during start and shutdown."""
    if not service_of(request).ready:
        raise Problem(503, "the index is not loaded, or the server is stopping; try again", retry_after=2)
    return replies.reply({"status": "ready"})


@router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return counters for Prometheus."""
    return Response(service_of(request).metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
