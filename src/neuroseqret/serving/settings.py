"""What a server is told when it starts: where it listens, what it allows, which models it may rerank with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from neuroseqret.errors import UserError

PORT = 8765


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for, and how much the server does at once."""

    body_bytes: int = 256 << 20  # of sequences that are added
    json_bytes: int = 16 << 20  # of every other body
    queries: int = 256  # per request
    events: int = 20_000  # per query
    k: int = 1000
    compared: int = 10_000_000  # sequences that one query may be compared with
    where_characters: int = 4000
    hits_to_explain: int = 20
    rows: int = 1000  # sequences per page of a listing
    seconds: float = 30.0  # for an answer, and for a body of JSON to arrive
    upload_seconds: float = 600.0  # for a body of sequences to arrive
    idle_seconds: float = 20.0  # without a byte of a body that was announced; for the head of a request
    concurrent: int = 256  # requests
    uploads: int = 4  # bodies of sequences at once

    @property
    def shown(self) -> dict[str, int]:
        """The limits that a caller has to know."""
        names = ("k", "compared", "queries", "events", "body_bytes", "where_characters", "hits_to_explain")
        return {name: getattr(self, name) for name in names}


def limits_of(words: Sequence[str]) -> Limits:
    """Return the limits with those changed that words such as `k=100` name."""
    usual = asdict(Limits())
    changed: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in usual:
            raise UserError(f"no limit is called {name!r}; limits are {', '.join(usual)}")
        try:
            changed[name] = type(usual[name])(value)
        except ValueError:
            raise UserError(f"--limit {word}: {value!r} is not a number") from None
        if changed[name] <= 0:
            raise UserError(f"--limit {word}: a limit must be more than 0")
    return replace(Limits(), **changed)


@dataclass(frozen=True)
class ServerSettings:
    """Settings of one server."""

    index: Path
    host: str = "127.0.0.1"
    port: int = PORT
    keys: Path | None = None
    rerank: tuple[Path, ...] = ()
    workers: int = 1
    rate: float = 100.0  # requests per second and key; 0 for no limit
    tls_cert: Path | None = None
    tls_key: Path | None = None
    audit: Path | None = None
    origins: tuple[str, ...] = ()  # other sites whose pages may call this server (CORS)
    window: float = 0.003  # seconds that a search waits for others to be embedded with; 0 turns batching off
    refresh_seconds: float = 0.2  # between two looks for new commits
    telemetry: bool = False
    counts: Path | None = None  # file in which several processes count the requests and writes of each key
    limits: Limits = field(default_factory=Limits)
