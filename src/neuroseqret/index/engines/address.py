"""The address of an engine: where its server is, what the collection is called, and options.

    milvus://host:19530/collection?consistency=bounded&tls=on
    milvus:///folder/file.db/collection                           Milvus Lite, in a local file

An address is kept in `index.json`, so it carries no user or password. Those come from the environment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from neuroseqret.errors import UserError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")


@dataclass(frozen=True)
class Address:
    """An address, taken apart."""

    scheme: str
    host: str  # empty for a local file
    port: int | None
    file: str  # empty for a server
    collection: str
    options: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{self.host}{port}{self.file}/{self.collection}"

    def option(self, name: str, *allowed: str) -> str:
        """Return the value of an option, the first of the allowed ones if it is not given."""
        value = self.options.get(name, allowed[0])
        if value not in allowed:
            raise UserError(f"{self}: {name} cannot be {value[:40]!r}; choose one of {', '.join(allowed)}")
        return value


def parse_address(text: str, known: dict[str, tuple[str, ...]]) -> Address:
    """Take an address apart; `known` has the options of every scheme."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UserError(
            f"the engine's address cannot be read ({error}); write milvus://host:19530/collection"
        ) from None
    if parts.scheme not in known:
        raise UserError(
            f"no engine is called {parts.scheme[:40]!r}; engines are {', '.join(known)}, "
            "with an address such as milvus://host:19530/collection"
        )
    if parts.username is not None or parts.password is not None:
        raise UserError(
            f"{parts.scheme}://{host}: leave user and password out of the address, which is stored with the index; "
            f"set the environment variable {token_variable(parts.scheme)} to user:password"
        )
    file, _, collection = unquote(parts.path).rpartition("/")
    if host:
        file, collection = "", unquote(parts.path).strip("/")
    if not _NAME.fullmatch(collection):
        raise UserError(
            f"{parts.scheme}://{host}: the name of the collection is missing or has other characters than letters, "
            "digits and underscores; write milvus://host:19530/collection"
        )
    if not host and not file.endswith(".db"):
        raise UserError(
            f"{parts.scheme}://{file}: names neither a server nor a local file that ends with .db; "
            "write milvus://host:19530/collection"
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    made = Address(parts.scheme, host, port, file, collection, options)
    for name in options:
        if name not in known[parts.scheme]:
            raise UserError(f"{made}: no option is called {name[:40]!r}; options are {', '.join(known[parts.scheme])}")
    return made


def token_variable(scheme: str) -> str:
    """Return the name of the environment variable that holds user and password, or an API key."""
    return f"NEUROSEQRET_{scheme.upper()}_TOKEN"


def token(scheme: str) -> str:
    """Return user and password, or an API key; empty if there is none."""
    return os.environ.get(token_variable(scheme), "")
