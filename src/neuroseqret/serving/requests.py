"""What routes do with a request before the work begins: read its body, within limits, and find who calls."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from typing import IO, Any, TypeVar

from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from neuroseqret.serving.problems import Problem
from neuroseqret.serving.service import Service
from neuroseqret.serving.settings import Limits

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
_SMALL = 64 << 10  # bytes that are parsed at once; more are parsed in a thread


def service_of(request: Request) -> Service:
    """Return the service behind the app."""
    found: Service = request.app.state.service
    return found


async def chunks(request: Request, most: int, seconds: float, limits: Limits) -> AsyncIterator[bytes]:
    """Yield the body piece by piece; refuse it as soon as it is too large or has not arrived in `seconds`."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > most:
        raise _too_large(most)
    size, stream, end = 0, request.stream(), time.monotonic() + seconds
    while True:
        left = end - time.monotonic()
        try:
            chunk = await _within(anext(stream, None), min(limits.idle_seconds, left))
        except asyncio.TimeoutError:
            if left <= limits.idle_seconds:
                detail = f"the body did not arrive within {seconds:.0f} seconds; send it in parts"
            else:
                detail = f"no byte of the body arrived for {limits.idle_seconds:.0f} seconds; send it again"
            raise Problem(408, detail) from None
        except ClientDisconnect:
            raise Problem(400, "the connection ended before the body did; send it again") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise _too_large(most)
        yield chunk


if sys.version_info >= (3, 11):

    async def _within(work: Awaitable[T], seconds: float) -> T:
        """Do what `asyncio.wait_for` does, without a task for the work: most bodies are there already."""
        async with asyncio.timeout(seconds):
            return await work
else:
    _within = asyncio.wait_for


def _too_large(most: int) -> Problem:
    return Problem(413, f"the body has more than {most:,} bytes; send it in parts")


async def json_body(request: Request, shape: type[M]) -> M:
    """Return a JSON body as a typed model."""
    service = service_of(request)
    limits = service.limits
    check_content_type(request, "application/json")
    body = b"".join([chunk async for chunk in chunks(request, limits.json_bytes, limits.seconds, limits)])
    if len(body) <= _SMALL:
        return shape.model_validate_json(body)
    return await service.read(shape.model_validate_json, body)


def check_content_type(request: Request, *known: str) -> str:
    """Return the content-type without its parameters; refuse what is not known here."""
    found = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if found not in known:
        raise Problem(415, f"the content-type is {found[:80] or 'missing'!r}; send {' or '.join(known)}")
    return found


async def spooled(request: Request) -> IO[bytes]:
    """Return the body as an open file without a name: large bodies must not fill the memory."""
    limits = service_of(request).limits
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        async for chunk in chunks(request, limits.body_bytes, limits.upload_seconds, limits):
            file.write(chunk)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def body_of(shape: type[BaseModel], **others: str) -> dict[str, Any]:
    """Describe a JSON body for OpenAPI; `app.described` adds the schema. `others` are further content-types."""
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{shape.__name__}"}}}
    content |= {
        kind: {"schema": {"type": "string", "format": "binary", "description": said}} for kind, said in others.items()
    }
    return {"requestBody": {"required": True, "content": content}}


def scopes_of(request: Request) -> list[str]:
    """Return what the caller may do."""
    found: list[str] = request.scope.get("state", {}).get("scopes", [])
    return found
