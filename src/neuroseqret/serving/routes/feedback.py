"""`/v1/feedback`: judgements of hits, stored with the index."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from neuroseqret.serving import replies, reply_shapes, request_shapes
from neuroseqret.serving.requests import body_of, json_body, service_of
from neuroseqret.serving.routes.search import in_time
from neuroseqret.serving.routes.sequences import decoded, encoded
from neuroseqret.serving.service import judge

router = APIRouter(prefix="/v1/feedback", tags=["feedback"])


@router.post("", response_model=reply_shapes.FeedbackReply, openapi_extra=body_of(request_shapes.FeedbackRequest))
async def store(request: Request) -> Response:
    """Store judgements of the hits of one query."""
    asked = await json_body(request, request_shapes.FeedbackRequest)
    service = service_of(request)
    state = request.scope["state"]
    user = None if state.get("key") is None else state["caller"]  # who holds a key cannot judge as somebody else
    number = await service.note(judge, service, asked, user)
    await service.noted("judge", state, judgements=number)
    return replies.reply({"stored": number})


@router.get("", response_model=reply_shapes.FeedbackListing)
async def listing(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000, description="Number of judgements.")] = 50,
    cursor: Annotated[str | None, Query(max_length=40, description="`next` of the page before.")] = None,
) -> Response:
    """List judgements in the order of storing."""
    service = service_of(request)
    after = 0 if cursor is None else decoded(cursor)

    def work() -> bytes:
        found: list[dict[str, Any]] = []
        position = after
        for following, one in service.judgements.read(after):
            if len(found) == limit:
                return replies.dumps({"judgements": found, "next": encoded(position)})
            found.append(vars(one))
            position = following
        return replies.dumps({"judgements": found, "next": None})

    return Response(await in_time(service, service.read(work)), media_type="application/json")
