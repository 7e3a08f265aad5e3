"""The gate: who calls, and whether the call may pass. Runs before anything of a body is read."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import Scope

from neuroseqret.serving.keys import SCOPES, Key, KeyRing
from neuroseqret.serving.limits import Quotas, RateLimit, SharedCounts
from neuroseqret.serving.problems import Problem
from neuroseqret.serving.settings import ServerSettings

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_SAFE = ("GET", "HEAD", "OPTIONS")
#: Reads that are POSTs, because their question is too long for an address.
_ASKING = ("/v1/search", "/v1/explain", "/v1/embed")


@dataclass(frozen=True)
class Caller:
    """Who calls: a key, or whoever can reach a server without keys."""

    name: str
    scopes: tuple[str, ...]
    key: Key | None = None


class Gate:
    """Checks the host, the key, its scope and its rate."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.ring = None if settings.keys is None else KeyRing(settings.keys)
        file = settings.counts
        kept = [None if file is None else SharedCounts(file, table) for table in ("rates", "quotas")]
        self.rates, self.quotas = RateLimit(settings.rate, 2 * settings.rate, kept[0]), Quotas(counts=kept[1])

    def passed(self, scope: Scope) -> Caller:
        """Return who calls; raise a problem if the call may not pass."""
        headers, path = Headers(scope=scope), scope["path"]
        if self.ring is None:
            self._check_host(headers)
        if scope["method"] not in _SAFE:
            self._check_origin(headers, scope)
        if not path.startswith(("/v1", "/metrics")) or scope["method"] == "OPTIONS":
            return Caller("anyone", ())  # the page's files, health and the description hold no data
        caller = self._caller(headers)
        needed = needed_scope(scope["method"], path)
        if caller.key is not None:
            self.rates.check(caller.key.id, caller.key.rate)
        if needed not in caller.scopes:
            raise Problem(403, f"this key has the scopes {', '.join(caller.scopes)}; this call needs {needed!r}")
        if needed == "write" and caller.key is not None:
            self.quotas.check(caller.key.id, caller.key.quota)
        return caller

    def _caller(self, headers: Headers) -> Caller:
        if self.ring is None:
            return Caller("local", SCOPES)
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not given.strip():
            raise Problem(401, "this server needs a key; send the header 'Authorization: Bearer KEY'")
        key = self.ring.find(given.strip())
        if key is None:
            raise Problem(401, "this key is unknown or has expired; ask for a new one")
        return Caller(key.name, key.scopes, key)

    def _check_host(self, headers: Headers) -> None:
        """Without keys only this machine may call, also not a site whose name was pointed at this machine."""
        host = _host(f"//{headers.get('host', '')}")
        if host not in (*_LOOPBACK, self.settings.host):
            raise Problem(421, "this server answers to its own address alone; open it as http://127.0.0.1")

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        """A page of another site must not write through a visitor's browser."""
        origin = headers.get("origin")
        if origin is None or origin in self.settings.origins:
            return
        if urlsplit(origin).netloc != headers.get("host"):
            raise Problem(403, f"pages of {origin[:100]} may not call this server; name it with --origin")


def needed_scope(method: str, path: str) -> str:
    """Return the scope that a call needs: asking and judging reads, changing writes, counters and labels admin."""
    if path.startswith("/metrics"):
        return "admin"
    if path.rstrip("/") == "/v1/feedback":
        return "read" if method == "POST" else "admin"
    return "read" if method in _SAFE or path.rstrip("/") in _ASKING else "write"


def _host(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
