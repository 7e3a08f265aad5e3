"""The app: routes, errors, static files of the page, and what surrounds every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Mount
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

import neuroseqret
from neuroseqret.errors import UserError
from neuroseqret.serving import problems, reply_shapes, request_shapes
from neuroseqret.serving.examples import REPLIES
from neuroseqret.serving.middleware import Surroundings
from neuroseqret.serving.routes import feedback, index, operation, search, sequences
from neuroseqret.serving.service import Service
from neuroseqret.serving.telemetry import Tracer

SEARCH = "/v1/search"
_SEARCHED = SimpleNamespace(path=SEARCH)  # what the counters call it
PAGE = Path(__file__).parent / "page"
_READING = ("GET", "HEAD")
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_BODIES: tuple[type[BaseModel], ...] = (
    request_shapes.SearchRequest,
    request_shapes.ExplainRequest,
    request_shapes.EmbedRequest,
    request_shapes.AddRequest,
    request_shapes.RemoveRequest,
    request_shapes.FeedbackRequest,
    reply_shapes.ProblemDocument,
)


def make_app(service: Service) -> FastAPI:
    """Return the app over a service; when it ends, it finishes what the service has begun."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        watching = asyncio.create_task(service.watch())
        try:
            yield
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            await service.close()
            await asyncio.get_running_loop().run_in_executor(None, tracer.close)

    tracer = Tracer(service.settings.telemetry)
    app = FastAPI(
        title="NeuroSeqRet",
        version=neuroseqret.__version__,
        description="Search for continuous-time event sequences.",
        lifespan=life,
        docs_url=None,  # its page loads scripts from other sites
        redoc_url=None,
    )
    app.state.service = service
    for module in (search, sequences, feedback, index, operation):
        app.include_router(module.router)
    if PAGE.is_dir():
        app.mount("/", StaticFiles(directory=PAGE, html=True), "page")
    app.add_exception_handler(problems.Problem, problems.answer)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(UserError, problems.answer)
    app.add_exception_handler(ValidationError, problems.answer)
    app.openapi = lambda: described(app)  # type: ignore[method-assign]
    app.add_middleware(Direct)
    if origins := service.settings.origins:
        app.add_middleware(CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"])
    app.add_middleware(Surroundings, settings=service.settings, metrics=service.metrics, tracer=tracer)
    return app


class Direct:
    """Hands searches to their route at once.

    Matching routes and solving parameters take a third of the time that a search in a batch takes. The route of a
    search has no parameters and is known by its address, so this layer calls the same function with the same errors.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a search, or pass the request on."""
        if scope["type"] != "http" or scope["path"] != SEARCH or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        request, scope["route"] = Request(scope, receive), _SEARCHED
        try:
            answer = await search.search(request)
        except (problems.Problem, UserError, ValidationError) as error:
            answer = await problems.answer(request, error)
        await answer(scope, receive, send)


async def _invalid(request: Request, error: Exception) -> Response:
    """A parameter of the address that does not fit."""
    assert isinstance(error, RequestValidationError)
    flaw = error.errors()[0]
    place = ".".join(str(part) for part in flaw["loc"][1:]) or "request"
    return await problems.answer(request, problems.Problem(422, f"{place}: {flaw['msg']}"))


async def _http(request: Request, error: Exception) -> Response:
    """An address or method that does not exist."""
    assert isinstance(error, HTTPException)
    if error.status_code not in (404, 405):
        found = problems.Problem(error.status_code, str(error.detail))
        found.headers |= dict(error.headers or {})
    elif allowed := _methods_at(request):
        taken = " or ".join(allowed)
        found = problems.Problem(405, f"this address takes {taken}, not {request.method}")
        found.headers["allow"] = ", ".join(allowed)
    else:
        found = problems.Problem(404, "there is nothing at this address; /openapi.json lists what there is")
    return await problems.answer(request, found)


def _methods_at(request: Request) -> list[str]:
    """Return the methods that an address takes, if it exists and the request has another one.

    The page is mounted at `/` and so takes every request that no route takes, also those with the wrong method.
    """
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]

    def taken(method: str) -> bool:
        asked = {**request.scope, "method": method}
        return any(route.matches(asked)[0] is Match.FULL for route in routes)

    methods = [method for method in _METHODS if taken(method)]
    if not methods and (PAGE / request.url.path.lstrip("/")).is_file():
        methods = list(_READING)
    return [] if request.method in methods else methods


def described(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with the bodies that routes read themselves and the problem documents."""
    if app.openapi_schema is None:
        document = FastAPI.openapi(app)
        _, found = models_json_schema(
            [(one, "validation") for one in _BODIES], ref_template="#/components/schemas/{model}"
        )
        schemas = document["components"]["schemas"]
        schemas |= found["$defs"]
        for name, example in REPLIES.items():
            schemas[name]["examples"] = [example]
        wrong = {
            "description": "What is wrong, and what to do.",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"] = {
                    "default": wrong,
                    **{k: v for k, v in operation["responses"].items() if k != "422"},
                }
        app.openapi_schema = document
    return app.openapi_schema
