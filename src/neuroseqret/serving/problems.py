"""Errors as problem documents (RFC 9457): what is wrong and what to do, never a traceback."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from neuroseqret.errors import UserError

MEDIA_TYPE = "application/problem+json"


class Problem(Exception):
    """An answer other than success: a status, a sentence, and headers such as Retry-After."""

    def __init__(self, status: int, detail: str, *, retry_after: float | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.more = status, detail, more
        self.headers = {} if retry_after is None else {"retry-after": str(max(1, round(retry_after)))}
        if status == HTTPStatus.UNAUTHORIZED:
            self.headers["www-authenticate"] = "Bearer"


def title_of(problem: Problem) -> str:
    """Return the name of the status."""
    return HTTPStatus(problem.status).phrase


def document(problem: Problem, request_id: str | None) -> dict[str, Any]:
    """Return the problem document as a mapping."""
    found = {
        "type": "about:blank",
        "title": title_of(problem),
        "status": problem.status,
        "detail": problem.detail,
        **problem.more,
    }
    return found if request_id is None else {**found, "request": request_id}


def response(problem: Problem, request_id: str | None = None) -> Response:
    """Return the problem document as an answer."""
    body = orjson.dumps(document(problem, request_id), default=str)
    return Response(body, problem.status, problem.headers, MEDIA_TYPE)


def as_problem(error: Exception) -> Problem:
    """Return the problem that an exception stands for; what is not a caller's mistake is a 500 without details."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, ValidationError):
        return _of_validation(error)
    if isinstance(error, UserError):
        return Problem(422, str(error))
    return Problem(500, "the server failed; its log has the reason under the id of this request")


def _of_validation(error: ValidationError) -> Problem:
    """Name the first field that does not fit, and list up to ten of them."""
    flaws = error.errors(include_url=False, include_context=False, include_input=False)[:10]
    listed = [{"field": _field(flaw["loc"]), "problem": flaw["msg"]} for flaw in flaws]
    if flaws and flaws[0]["type"] == "json_invalid":
        return Problem(422, f"the body is not JSON: {flaws[0]['msg']}")
    return Problem(422, f"{listed[0]['field']}: {listed[0]['problem']}", errors=listed)


def _field(place: tuple[int | str, ...]) -> str:
    """Return where a flaw is: `queries.0.times`; the names of a query's forms are not fields of the body."""
    return ".".join(str(part) for part in place if part not in ("events query", "indexed query")) or "body"


async def answer(request: Request, error: Exception) -> Response:
    """Return the answer to a request that failed."""
    return response(as_problem(error), request.scope.get("state", {}).get("request_id"))
