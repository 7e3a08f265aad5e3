"""What a search gives: ranked hits, and how they were found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Hit:
    """One relevant sequence; in sub-sequence search `id` is the whole sequence's and the window tells where.

    `offset` and `stop` are the numbers of the window's first event and of the one after its last in the whole
    sequence, `start` and `end` its times.
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
        """The id of the sequence that the window was cut from, in sub-sequence search."""
        return self.id if self.window is not None else None

    def as_dict(self) -> dict[str, Any]:
        """All fields that are there, for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None and value != {}}


@dataclass(frozen=True)
class SearchReport:
    """How one query was answered."""

    method: str  # exhaustive, cells, buckets or hamming
    corpus: int  # sequences (windows) that could have been compared
    comparisons: int  # embeddings that the query was compared with (cell centres included)
    reranked: int = 0  # pairs that a model scored after that

    @property
    def fraction(self) -> float:
        """Comparisons as a part of the corpus."""
        return self.comparisons / self.corpus if self.corpus else 0.0


class Hits(list[Hit]):
    """What `Index.search` gives for a query: its hits, best first; the `query`'s id and the `report` of the search."""

    def __init__(self, hits: Iterable[Hit], query: str, report: SearchReport) -> None:
        super().__init__(hits)
        self.query, self.report = query, report
