"""`/v1/sequences`: read, list, add, upsert and remove sequences."""

from __future__ import annotations

import base64
import binascii
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from neuroseqret.index.store import OFFSET, PARENT
from neuroseqret.index.view import UnknownId
from neuroseqret.serving import replies, reply_shapes, request_shapes
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.request_shapes import UnknownMarks
from neuroseqret.serving.requests import body_of, check_content_type, json_body, service_of, spooled
from neuroseqret.serving.routes.search import in_time
from neuroseqret.serving.service import Service, check_where
from neuroseqret.serving.uploads import ARROW, JSON, NDJSON, PARQUET, Upload

router = APIRouter(prefix="/v1/sequences", tags=["sequences"])
_MANY = {
    NDJSON: "One sequence per line.",
    ARROW: "An Arrow IPC stream with the columns id, times, marks, start, end, group and metadata.",
    PARQUET: "A Parquet file with the same columns.",
}
_BODY = body_of(request_shapes.AddRequest, **_MANY)


@router.get("", response_model=reply_shapes.Listing)
async def listing(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000, description="Number of sequences.")] = 50,
    cursor: Annotated[str | None, Query(max_length=40, description="`next` of the page before.")] = None,
    where: Annotated[str | None, Query(description="SQL condition on metadata.")] = None,
    fields: Annotated[str | None, Query(description="Columns, divided by commas; 'events' adds the events.")] = None,
    sample: Annotated[int | None, Query(ge=1, le=1000, description="Number to draw at random instead.")] = None,
    seed: Annotated[int, Query(ge=0, le=2**32 - 1)] = 0,
) -> Response:
    """List sequences in the order of adding, page by page."""
    service = service_of(request)
    check_where(where, service.limits.where_characters)
    after = -1 if cursor is None else decoded(cursor)
    names = None if fields is None else [name for name in fields.split(",") if name]

    def work() -> bytes:
        view = service.index.view()
        if sample is None:
            rows, following = view.page(after, limit, where or None)
        else:
            rows, following = view.sample(sample, seed, where or None), None
        with_events = names is not None and replies.EVENTS in names
        shown = [replies.sequence(one, names, with_events) for one in view.sequences(rows)] if len(rows) else []
        if service.index.config.settings.windowed:
            for entry, record in zip(shown, view.records(rows), strict=True):
                entry |= {"window": entry["id"], "id": record[PARENT], "offset": record[OFFSET]}
        return replies.dumps({"sequences": shown, "next": None if following is None else encoded(following)})

    return Response(await in_time(service, service.read(work)), media_type="application/json")


@router.get("/{id:path}", response_model=reply_shapes.SequenceShown)
async def one(request: Request, id: str) -> Response:
    """Return one sequence with its events."""
    service = service_of(request)

    def work() -> bytes:
        try:
            found = service.index.view().whole([id])[0]
        except UnknownId as error:
            raise Problem(404, str(error)) from error
        return replies.dumps(replies.sequence(found, None, True))

    return Response(await in_time(service, service.read(work)), media_type="application/json")


@router.post("", response_model=reply_shapes.AddReply, openapi_extra=_BODY)
async def add(request: Request, unknown_marks: UnknownMarks = "error", strict: bool = False) -> Response:
    """Add sequences; those that are there already are skipped."""
    return await _write(request, False, unknown_marks, strict)


@router.put("", response_model=reply_shapes.AddReply, openapi_extra=_BODY)
async def upsert(request: Request, unknown_marks: UnknownMarks = "error", strict: bool = False) -> Response:
    """Add sequences, and replace those whose id is known."""
    return await _write(request, True, unknown_marks, strict)


@router.post("/remove", response_model=reply_shapes.RemoveReply, openapi_extra=body_of(request_shapes.RemoveRequest))
async def remove_many(request: Request) -> Response:
    """Remove sequences by id; unknown ids are skipped."""
    asked = await json_body(request, request_shapes.RemoveRequest)
    return replies.reply({"removed": await _removed(request, service_of(request), asked.ids)})


@router.delete("/{id:path}", response_model=reply_shapes.RemoveReply)
async def remove(request: Request, id: str) -> Response:
    """Remove one sequence."""
    number = await _removed(request, service_of(request), [id])
    if not number:
        raise Problem(404, f"the index holds no sequence {id[:200]!r}; check the id")
    return replies.reply({"removed": number})


async def _write(request: Request, upsert: bool, unknown_marks: UnknownMarks, strict: bool) -> Response:
    service = service_of(request)
    kind = check_content_type(request, JSON, NDJSON, ARROW, PARQUET)
    verb = "upsert" if upsert else "add"
    async with service.upload():
        body = await spooled(request)
        upload = Upload(service.index, upsert, unknown_marks, strict, service.limits.body_bytes)
        try:
            done = await service.write(upload.run, kind, body)
        finally:
            written = upload.done.added + upload.done.replaced
            await noted(request, verb, written, **asdict(upload.done))
    return replies.reply(done)


async def _removed(request: Request, service: Service, ids: list[str]) -> int:
    number = await service.write(service.index.remove, ids)
    await noted(request, "remove", number, ids=ids[:20], asked=len(ids))
    return number


async def noted(request: Request, verb: str, number: int, **what: object) -> None:
    """Note a write in the audit log, the counters and the key's quota."""
    service, state = service_of(request), request.scope["state"]
    await service.noted(verb, state, sequences=number, **what)
    service.metrics.written.labels(verb).inc(number)
    if state.get("key") is not None:
        state["gate"].quotas.count(state["key"].id, number)


def encoded(serial: int) -> str:
    """Return a cursor: callers pass it back as it is."""
    return base64.urlsafe_b64encode(serial.to_bytes(8, "big")).decode().rstrip("=")


def decoded(cursor: str) -> int:
    """Return the number in a cursor."""
    try:
        octets = base64.b64decode(cursor + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        octets = b""
    if len(octets) != 8 or octets[0] > 127:
        raise Problem(422, "the cursor is not one that this server gave; start without a cursor")
    return int.from_bytes(octets, "big")
