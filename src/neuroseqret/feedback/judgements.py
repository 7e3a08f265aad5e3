"""Judgements of hits, kept with the index in one append-only file.

INDEX/feedback.jsonl   one JSON object per line: query, id, relevant, user, time

An acknowledged judgement survives the end of the process and a power cut: the file is synced before `append` returns.
Processes take turns by a lock. A line that was cut short by a crash was never acknowledged; it is closed by a line feed
when the next one is written, and skipped when the file is read.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from neuroseqret.errors import UserError
from neuroseqret.index import Index
from neuroseqret.storage import lock
from neuroseqret.storage.bucket import Bucket
from neuroseqret.storage.sync import sync_folder

FILE, LOCK = "feedback.jsonl", "feedback.lock"


@dataclass(frozen=True)
class StoredJudgement:
    """What one user said about one hit of one query; `relevant` is None where an earlier judgement was taken back.

    The query is a mapping: `id` of a sequence of the index, with `events` (first, stop) if it is a part of one; or
    `id`, `times` and `marks` (by name if marks have names), with `start`, `end` and `values` if they are known.
    """

    query: dict[str, Any]
    id: str
    relevant: bool | None
    user: str | None
    time: str

    @property
    def about(self) -> tuple[str, str, str | None]:
        """Query, sequence and user: a later judgement with the same three replaces an earlier one."""
        return json.dumps(self.query, sort_keys=True), self.id, self.user


class Judgements:
    """The judgements of one index."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / FILE

    def append(
        self, query: dict[str, Any], judged: Iterable[tuple[str, bool | None]], user: str | None = None
    ) -> list[StoredJudgement]:
        """Store judgements (id, relevant) of hits of a query; return when they are safe on disk."""
        now = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = [StoredJudgement(query, id, relevant, user, now) for id, relevant in judged]
        lines = "".join(json.dumps(asdict(one), ensure_ascii=False, allow_nan=False) + "\n" for one in made)
        self._keep(lines.encode("utf-8", "surrogatepass"))
        return made

    def _keep(self, lines: bytes) -> None:
        try:
            with lock.held(self.folder / LOCK):
                self._write(lines)
        except OSError as error:
            raise UserError(f"{self.file}: cannot be written ({error.strerror or error})") from error

    def _write(self, lines: bytes) -> None:
        is_new = not self.file.exists()
        with open(self.file, "ab") as stream:
            size = stream.tell()
            if size and not self._ends_with_line_feed(size):
                lines = b"\n" + lines
            try:
                stream.write(lines)
                stream.flush()
                os.fsync(stream.fileno())
            except OSError:
                stream.truncate(size)  # a full disk must not leave half a line that looks acknowledged
                raise
        if is_new:
            sync_folder(self.folder)

    def _ends_with_line_feed(self, size: int) -> bool:
        with open(self.file, "rb") as stream:
            stream.seek(size - 1)
            return stream.read(1) == b"\n"

    def read(self, after: int = 0) -> Iterator[tuple[int, StoredJudgement]]:
        """Yield (position after it, judgement) from a position in the file on, in the order of storing."""
        if not self.file.exists():
            return
        with open(self.file, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(min(max(after, 0), size))
            position = stream.tell()
            for line in stream:
                position += len(line)
                if line.endswith(b"\n") and (one := _parsed(line)) is not None:
                    yield position, one

    def latest(self) -> list[StoredJudgement]:
        """Return what holds now: the last judgement of each query, sequence and user, without those taken back."""
        last: dict[Any, StoredJudgement] = {}
        for _, one in self.read():
            last.pop(one.about, None)
            last[one.about] = one
        return [one for one in last.values() if one.relevant is not None]


class BucketJudgements(Judgements):
    """The judgements of an index in an object store: one object per request, since objects cannot be appended to.

    Names begin with the time, so their order is that of storing as far as the clocks of the servers agree.
    """

    def __init__(self, bucket: Bucket) -> None:
        self.bucket = bucket.below("feedback")

    def _keep(self, lines: bytes) -> None:
        self.bucket.put(f"{time.time_ns():020d}-{uuid.uuid4().hex}.jsonl", lines)

    def read(self, after: int = 0) -> Iterator[tuple[int, StoredJudgement]]:
        begin = 0
        for name, size in self.bucket.list():
            position, begin = begin, begin + size
            if begin <= after:
                continue
            for line in (self.bucket.get(name) or b"").splitlines(keepends=True):
                position += len(line)
                if position > after and (one := _parsed(line)) is not None:
                    yield position, one


def judgements_of(index: Index) -> Judgements:
    """Return the judgements that are kept with an index."""
    return Judgements(index.folder) if index.place is None else BucketJudgements(index.place.content)


def _parsed(line: bytes) -> StoredJudgement | None:
    """Return the judgement of a line, None if a crash cut it short."""
    try:
        found = json.loads(line)
        return StoredJudgement(
            dict(found["query"]), str(found["id"]), found["relevant"], found.get("user"), str(found["time"])
        )
    except (ValueError, KeyError, TypeError):
        return None
