"""How much one key and all callers together may ask for: token buckets, daily quotas, requests at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, TypeVar

from neuroseqret.serving.problems import Problem

T = TypeVar("T")
Pair: TypeAlias = tuple[float, float]
Change: TypeAlias = Callable[[Pair | None], tuple[Pair, T]]
_DAY = 86_400.0
_REMEMBERED = 10_000  # callers whose buckets are kept


@dataclass
class Bucket:
    """A token bucket: `rate` tokens per second, at most `size` of them; one request takes one."""

    rate: float
    size: float
    clock: Callable[[], float] = time.monotonic
    tokens: float = field(init=False)
    seen: float = field(init=False)

    def __post_init__(self) -> None:
        self.tokens, self.seen = self.size, self.clock()

    def take(self, number: float = 1.0) -> float:
        """Take tokens and return 0; or take none and return the seconds until there are enough."""
        now = self.clock()
        self.tokens = min(self.size, self.tokens + (now - self.seen) * self.rate)
        self.seen = now
        if self.tokens >= number:
            self.tokens -= number
            return 0.0
        return (number - self.tokens) / self.rate


class Counts:
    """Two numbers per caller, changed by one process."""

    def __init__(self) -> None:
        self._kept: dict[str, Pair] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def change(self, caller: str, by: Change[T]) -> T:
        """Replace a caller's numbers (None if there are none) by those that `by` returns; return its result."""
        self._kept[caller], result = by(self._kept.get(caller))
        if len(self._kept) > _REMEMBERED:
            self._kept.pop(next(iter(self._kept)))
        return result


class SharedCounts(Counts):
    """The same in a file that all processes of a server change, so that a key has one count for all of them."""

    def __init__(self, file: Path, table: str) -> None:
        super().__init__()
        self.table = table
        self._file = sqlite3.connect(file, timeout=5.0, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA synchronous = OFF")  # it ends with the server
        self._file.execute(f"CREATE TABLE IF NOT EXISTS {table} (caller TEXT PRIMARY KEY, first REAL, second REAL)")

    def __len__(self) -> int:
        return int(self._file.execute(f"SELECT count(*) FROM {self.table}").fetchone()[0])

    def change(self, caller: str, by: Change[T]) -> T:
        """Change a caller's numbers; other processes wait meanwhile."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            asked = f"SELECT first, second FROM {self.table} WHERE caller = ?"
            new, result = by(self._file.execute(asked, [caller]).fetchone())
            self._file.execute(f"REPLACE INTO {self.table} VALUES (?, ?, ?)", [caller, *new])
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")
        return result


class RateLimit:
    """One bucket per caller."""

    def __init__(self, rate: float, burst: float, counts: Counts | None = None) -> None:
        self.rate, self.burst = rate, burst
        self.counts = Counts() if counts is None else counts

    def check(self, caller: str, rate: float | None = None) -> None:
        """Raise a 429 with the time to wait if a caller asks too often."""
        wanted = self.rate if rate is None else rate
        if wanted <= 0:
            return
        size = self.burst if rate is None else max(2 * wanted, 1.0)

        def take(kept: Pair | None) -> tuple[Pair, float]:
            bucket = Bucket(wanted, size)
            if kept is not None:
                bucket.tokens, bucket.seen = kept
            wait = bucket.take()
            return (bucket.tokens, bucket.seen), wait

        if wait := self.counts.change(caller, take):
            detail = f"more than {wanted:g} requests per second; wait {max(1, round(wait))} s and go slower"
            raise Problem(429, detail, retry_after=wait)


class Quotas:
    """Sequences that each key may write per day, from its first write on; the count begins anew with the server."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, counts: Counts | None = None) -> None:
        self.clock = clock
        self.counts = Counts() if counts is None else counts

    def check(self, key: str, quota: int | None) -> None:
        """Raise a 429 if the quota is used up."""
        if quota is None:
            return
        begun, used = self._counted(key, 0)
        if used >= quota:
            left = begun + _DAY - self.clock()
            detail = f"this key has written its {quota:,} sequences of the day; go on in {left / 3600:.1f} hours"
            raise Problem(429, detail, retry_after=left)

    def count(self, key: str, number: int) -> None:
        """Count sequences that were written."""
        self._counted(key, number)

    def _counted(self, key: str, number: int) -> Pair:
        now = self.clock()

        def more(kept: Pair | None) -> tuple[Pair, Pair]:
            begun, used = (now, 0.0) if kept is None or now - kept[0] >= _DAY else kept
            return ((begun, used + number),) * 2

        return self.counts.change(key, more)
