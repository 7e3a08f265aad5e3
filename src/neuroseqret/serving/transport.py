"""Calls of the client: one pool of connections, retries with back-off where a call may be repeated, plain errors."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Mapping
from typing import Any

from neuroseqret.errors import MissingExtraError, UserError

_AGAIN = (429, 502, 503, 504)  # answers after which the same call may succeed
_TRIES, _FIRST_PAUSE, _LONGEST_PAUSE = 5, 0.2, 10.0


class ServerError(UserError):
    """The server refused a call, or cannot be reached; `status` is None if there was no answer."""

    def __init__(self, said: str, status: int | None = None) -> None:
        super().__init__(said)
        self.status = status


class Transport:
    """HTTP to one server."""

    def __init__(self, url: str, key: str | None, timeout: float, tries: int = _TRIES) -> None:
        try:
            import urllib3
        except ImportError as error:
            raise MissingExtraError("urllib3", "server", "nsr.connect") from error
        if not url.startswith(("http://", "https://")):
            raise UserError(f"{url}: not the address of a server; write it as http://host:port")
        self.url, self.tries = url.rstrip("/"), tries
        self._errors = urllib3.exceptions
        self._headers = {"accept": "application/json", **({} if key is None else {"authorization": f"Bearer {key}"})}
        self._pool = urllib3.PoolManager(maxsize=32, timeout=urllib3.Timeout(connect=10.0, read=timeout), retries=False)

    def call(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        kind: str = "application/json",
        *,
        repeatable: bool = True,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON of an answer; raise a `ServerError` that says what the server said.

        A `repeatable` call is tried again after a lost connection, and when the server is busy, after the time that it
        asks for, else after pauses that double. A body that is an iterator is sent once.
        """
        headers = self._headers if body is None else {**self._headers, "content-type": kind}
        tries = self.tries if repeatable and isinstance(body, (bytes, type(None))) else 1
        fields = {name: str(value) for name, value in (parameters or {}).items() if value is not None}
        for attempt in range(1, tries + 1):
            try:
                answer = self._pool.request(
                    method, f"{self.url}{path}{_query(fields)}", body=body, headers=headers, redirect=False
                )
            except self._errors.HTTPError as error:
                if attempt == tries:
                    raise ServerError(
                        f"{self.url}: cannot be reached ({_reason(error)}); is the server running?"
                    ) from error
                time.sleep(_pause(attempt, None))
                continue
            if answer.status in _AGAIN and attempt < tries:
                time.sleep(_pause(attempt, answer.headers.get("retry-after")))
                continue
            return self._read(answer.status, answer.data)
        raise AssertionError("unreachable")

    def _read(self, status: int, data: bytes) -> Any:
        try:
            found = json.loads(data)
        except ValueError as error:
            raise ServerError(
                f"{self.url}: answered {status} without JSON; is it a NeuroSeqRet server?", status
            ) from error
        if 200 <= status < 300:
            return found
        said = found.get("detail") if isinstance(found, dict) else None
        if status == 401:
            said = f"{said} (in Python connect(..., key=KEY), in a terminal the variable NEUROSEQRET_KEY)"
        raise ServerError(f"{self.url}: {said or f'answered {status}'}", status)


def _query(fields: Mapping[str, str]) -> str:
    from urllib.parse import urlencode

    return f"?{urlencode(fields)}" if fields else ""


def _pause(attempt: int, asked: str | None) -> float:
    """Return the seconds to wait before the next try; by chance up to half longer, so that callers do not march."""
    if asked is not None and asked.isdecimal():
        return min(float(asked), 60.0)
    return min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(1.0, 1.5)


def _reason(error: Exception) -> str:
    text = str(getattr(error, "reason", None) or error)
    return text.rsplit(": ", 1)[-1][:200]
