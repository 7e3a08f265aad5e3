"""`/v1/index` and `/v1/statistics`: what is served."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

import neuroseqret
from neuroseqret.serving import replies, reply_shapes
from neuroseqret.serving.requests import scopes_of, service_of
from neuroseqret.serving.routes.search import in_time
from neuroseqret.serving.statistics import columns_of

router = APIRouter(prefix="/v1", tags=["index"])


@router.get("/index", response_model=reply_shapes.IndexReply)
async def index(request: Request) -> Response:
    """Say what is served: model, marks, unit, size, candidates, versions; and what the caller may do."""
    service = service_of(request)
    scopes, key = scopes_of(request), request.scope["state"].get("key")

    def work() -> bytes:
        view, config, card = service.index.view(), service.index.config, service.index.model.card
        return replies.dumps(
            {
                "name": service.index.short_name,
                "model": config.model,
                "preset": None if card is None else card.preset,
                "sequences": view.snapshot.count,
                "windowed": config.settings.windowed,
                "dimension": config.dimension,
                "marks": config.marks,
                "mark_names": config.mark_names,
                "time_unit": config.time_unit,
                "candidates": view.snapshot.hot.finder.method,
                "columns": columns_of(view),
                "values": list(service.index.model.values),
                "training_columns": None if card is None else card.columns,
                "time_format": None if card is None else card.time_format,
                "explainable": service.explainable,
                "rerank": list(service.rerankers),
                "version": view.version,
                "library_version": neuroseqret.__version__,
                "scopes": scopes,
                "caller": None if key is None else key.name,
                "limits": service.limits.shown,
            }
        )

    return Response(await in_time(service, service.read(work)), media_type="application/json")


@router.get("/statistics", response_model=reply_shapes.StatisticsReply)
async def statistics(request: Request) -> Response:
    """Count lengths, marks, groups and values of columns."""
    service = service_of(request)

    def work() -> bytes:
        return service.statistics.of(service.index.view())

    return Response(await in_time(service, service.read(work)), media_type="application/json")
