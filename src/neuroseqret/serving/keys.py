"""Keys: who may read, write or administer. The file holds hashes, never keys.

A key is `nsr_ID_SECRET`, with 256 random bits in SECRET: too many to guess, so a fast hash is enough. The ID finds the
entry, then the hash of the secret is compared in constant time, also where there is no such entry. The server reads the
file again when it changes, so a revoked key ends within a second.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from neuroseqret.errors import UserError
from neuroseqret.storage import lock
from neuroseqret.storage.files import new_file

SCOPES = ("read", "write", "admin")
FORMAT = "neuroseqret-keys"
_KEY = re.compile(r"nsr_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NOBODY = hashlib.blake2b(b"", digest_size=32).hexdigest()


@dataclass(frozen=True)
class Key:
    """One entry of a key file."""

    id: str
    name: str
    scopes: tuple[str, ...]
    hash: str  # blake2b of the secret
    created: str
    expires: str | None = None
    rate: float | None = None  # requests per second; None for the server's default
    quota: int | None = None  # sequences that it may write per day; None for no limit

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires is not None and datetime.fromisoformat(self.expires) <= datetime.now(timezone.utc)


def hash_of(secret: str) -> str:
    """Return the hash under which a secret is stored."""
    return hashlib.blake2b(secret.encode(), digest_size=32).hexdigest()


def create(
    file: Path,
    name: str,
    scopes: tuple[str, ...],
    days: float | None = None,
    rate: float | None = None,
    quota: int | None = None,
) -> tuple[str, Key]:
    """Add a key to a file, which is made if it is missing; return the key, which is shown once, and its entry."""
    if unknown := [scope for scope in scopes if scope not in SCOPES]:
        raise UserError(f"no scope is called {unknown[0]!r}; scopes are {', '.join(SCOPES)}")
    if not name.strip() or len(name) > 200:
        raise UserError("a key needs a name of at most 200 characters, so that the log can say whose it is")
    id, secret, now = secrets.token_hex(6), secrets.token_urlsafe(32), datetime.now(timezone.utc)
    expires = None if days is None else (now + timedelta(days=days)).isoformat(timespec="seconds")
    held = tuple(scope for scope in SCOPES if scope in scopes)
    made = Key(id, name, held, hash_of(secret), now.isoformat(timespec="seconds"), expires, rate, quota)
    with _changing(file):
        known = read(file) if file.exists() else []
        if same := [key for key in known if key.name == name and not key.expired]:
            raise UserError(
                f"{file}: key {same[0].id} has the name {name!r} already; choose another name, or revoke that key first"
            )
        write(file, [*known, made])
    return f"nsr_{id}_{secret}", made


def revoke(file: Path, id: str) -> Key:
    """Remove the key with this id, or with this name; of several, the one that has not expired."""
    with _changing(file):
        known = read(file)
        found = [key for key in known if key.id == id] or [key for key in known if key.name == id]
        found = [key for key in found if not key.expired] or found
        if len(found) != 1:
            problem = "no key has" if not found else f"{len(found)} keys have"
            raise UserError(f"{file}: {problem} the id or name {id!r}; 'neuroseqret keys list' shows the ids")
        write(file, [key for key in known if key is not found[0]])
    return found[0]


def _changing(file: Path) -> Any:
    return lock.held(file.with_name(f".{file.name}.lock"))


def write(file: Path, keys: list[Key]) -> None:
    """Write the file, readable by its owner alone."""
    with new_file(file) as temporary:
        content = {"format": FORMAT, "version": 1, "keys": [asdict(key) for key in keys]}
        temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    file.chmod(0o600)


def read(file: Path) -> list[Key]:
    """Read a key file; raise a `UserError` if it is not one."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["format"] != FORMAT:
            raise ValueError("another format")
        return [replace(Key(**key), scopes=tuple(key["scopes"])) for key in found["keys"]]
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; make a key file with 'neuroseqret keys create {file}'") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{file}: not a key file ({error}); make one with 'neuroseqret keys create'") from error


class KeyRing:
    """The keys of a running server."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._keys: dict[str, Key] = {}
        self._stamp: tuple[int, int] | None = None
        self._looked = 0.0
        self._reload()

    def _reload(self) -> None:
        found = self.file.stat()
        stamp = (found.st_mtime_ns, found.st_ino)
        if stamp != self._stamp:
            self._keys = {key.id: key for key in read(self.file)}
            self._stamp = stamp

    def find(self, given: str) -> Key | None:
        """Return the entry of a key that is known and not expired."""
        if time.monotonic() - self._looked > 1.0:
            self._looked = time.monotonic()
            try:
                self._reload()
            except (OSError, UserError):
                self._keys = {}  # a key file that went away or broke must not leave revoked keys valid
                self._stamp = None
        parts = _KEY.fullmatch(given)
        key = self._keys.get(parts[1]) if parts else None
        same = hmac.compare_digest(hash_of(parts[2] if parts else ""), key.hash if key else _NOBODY)
        return key if key is not None and same and not key.expired else None
