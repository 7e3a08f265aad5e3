"""What a search returns: ranked hits, and how they were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Hit:
    """One relevant sequence. In sub-sequence search `id` is that of the whole sequence, and `window` that of the part.

    The window is events `offset` to `stop` (exclusive) of the whole sequence, observed from time `start` to `end`.
    """

    id: str
    score: float
    rank: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    group: str | None = None
    window: str | None = None
    offset: int | None = None
    stop: int | None = None
    start: float | None = None
    end: float | None = None

    @property
    def parent(self) -> str | None:
        """The id of the sequence that the window was cut from; None outside sub-sequence search."""
        return self.id if self.window is not None else None

    def as_dict(self) -> dict[str, Any]:
        """Return all fields that have a value, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != {}}


@dataclass(frozen=True)
class SearchReport:
    """How one query was answered."""

    method: str  # exhaustive, cells, buckets or hamming
    corpus: int  # sequences (or windows) that could have been compared
    comparisons: int  # how many of them were compared with the query
    reranked: int = 0  # sequences that a model scored again
    centres: int = 0  # cell centres that the query was compared with besides

    @property
    def fraction(self) -> float:
        """Comparisons as a share of the corpus."""
        return self.comparisons / self.corpus if self.corpus else 0.0


class Hits(list[Hit]):
    """The hits of one query, best first, with the id of the `query` and the `report` of the search."""

    def __init__(self, hits: Iterable[Hit], query: str, report: SearchReport) -> None:
        super().__init__(hits)
        self.query, self.report = query, report
