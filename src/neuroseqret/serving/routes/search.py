"""`/v1/search`, `/v1/explain`, `/v1/embed`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from neuroseqret.serving import bodies, replies, reply_shapes, request_shapes
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.requests import body_of, json_body, service_of
from neuroseqret.serving.service import Service

router = APIRouter(prefix="/v1", tags=["search"])
T = TypeVar("T")


@router.post("/search", response_model=reply_shapes.SearchReply, openapi_extra=body_of(request_shapes.SearchRequest))
async def search(request: Request) -> Response:
    """Find the sequences that are relevant to one query or several."""
    asked = await json_body(request, request_shapes.SearchRequest)
    service = service_of(request)
    return _json(await service.search(asked))


@router.post("/explain", response_model=reply_shapes.ExplainReply, openapi_extra=body_of(request_shapes.ExplainRequest))
async def explain(request: Request) -> Response:
    """Split the scores of hits over pairs of events."""
    asked = await json_body(request, request_shapes.ExplainRequest)
    service = service_of(request)
    return _json(await in_time(service, service.read(service.explain, asked)))


@router.post("/embed", response_model=reply_shapes.EmbedReply, openapi_extra=body_of(request_shapes.EmbedRequest))
async def embed(request: Request) -> Response:
    """Return the embeddings of sequences."""
    asked = await json_body(request, request_shapes.EmbedRequest)
    service = service_of(request)

    def work() -> bytes:
        limits, index = service.limits, service.index
        if len(asked.sequences) > limits.queries:
            raise Problem(
                422, f"{len(asked.sequences):,} sequences; at most {limits.queries:,} per request are embedded"
            )
        bodies.check_length((len(one.times) for one in asked.sequences), limits.events)
        many = bodies.sequences_of(asked.sequences, index.config.meaning, asked.unknown_marks, index.model.values)
        vectors = index.model.embed(many, asked.role, unknown_marks="keep")
        return replies.dumps({"dimension": vectors.shape[1], "embeddings": vectors})

    return _json(await in_time(service, service.read(work)))


async def in_time(service: Service, work: Awaitable[T]) -> T:
    """Return the result of the work, or refuse after the time that one request may take."""
    try:
        return await asyncio.wait_for(work, service.limits.seconds)
    except asyncio.TimeoutError:
        raise service.too_late() from None


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")
