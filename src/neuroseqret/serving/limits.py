"""How much one key and all callers together may ask for: token buckets, daily quotas, requests at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from neuroseqret.serving.problems import Problem

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


class RateLimit:
    """One bucket per caller."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self._buckets: dict[str, Bucket] = {}

    def check(self, caller: str, rate: float | None = None) -> None:
        """Raise a 429 with the time to wait if a caller asks too often."""
        wanted = self.rate if rate is None else rate
        if wanted <= 0:
            return
        bucket = self._buckets.get(caller)
        if bucket is None or bucket.rate != wanted:
            if len(self._buckets) >= _REMEMBERED:
                self._buckets.pop(next(iter(self._buckets)))
            size = self.burst if rate is None else max(2 * wanted, 1.0)
            bucket = self._buckets[caller] = Bucket(wanted, size)
        if wait := bucket.take():
            detail = f"more than {wanted:g} requests per second; wait {max(1, round(wait))} s and go slower"
            raise Problem(429, detail, retry_after=wait)


class Quotas:
    """Sequences that each key may write per day; counted per process, from its first write on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._used: dict[str, tuple[float, int]] = {}

    def check(self, key: str, quota: int | None) -> None:
        """Raise a 429 if the quota is used up."""
        begun, used = self._today(key)
        if quota is not None and used >= quota:
            left = begun + _DAY - self.clock()
            detail = f"this key has written its {quota:,} sequences of the day; go on in {left / 3600:.1f} hours"
            raise Problem(429, detail, retry_after=left)

    def count(self, key: str, number: int) -> None:
        """Count sequences that were written."""
        begun, used = self._today(key)
        self._used[key] = begun, used + number

    def _today(self, key: str) -> tuple[float, int]:
        begun, used = self._used.get(key, (self.clock(), 0))
        return (self.clock(), 0) if self.clock() - begun >= _DAY else (begun, used)
