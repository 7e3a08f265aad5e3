"""What a search returns: ranked hits, and how they were found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuroseqret.data.frames import frame_of_pandas, frame_of_polars
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import hits_table

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure

_IN_REPR = ("group", "offset", "stop", "metadata")
#: Reads sequences by id.
Fetch = Callable[[Sequence[str]], EventSequences]


@dataclass(frozen=True, repr=False)
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
    fetch: Fetch | None = field(default=None, repr=False, compare=False)  # reads the hit's events

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "fetch": None}  # an open index cannot be pickled

    def __repr__(self) -> str:
        words = "".join(f", {name}={value!r}" for name, value in self.as_dict().items() if name in _IN_REPR)
        return f"Hit({self.rank}: {self.id!r}, score={self.score:.4f}{words})"

    @property
    def sequence(self) -> EventSequence:
        """The events of the hit: of the window that was found, or of the whole sequence."""
        return _fetched([self])[0]

    @property
    def parent(self) -> str | None:
        """The id of the sequence that the window was cut from; None outside sub-sequence search."""
        return self.id if self.window is not None else None

    def as_dict(self) -> dict[str, Any]:
        """Return all fields that have a value, for JSON."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "fetch"}
        return {name: value for name, value in values.items() if value is not None and value != {}}


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
    """The hits of one query, best first, with the id of the `query` and the `report` of the search.

    `asked` is the query itself and `sequences` are the events of the hits, where they are known.
    """

    def __init__(
        self,
        hits: Iterable[Hit],
        query: str,
        report: SearchReport,
        asked: EventSequence | None = None,
        fetch: Fetch | None = None,
    ) -> None:
        super().__init__(hits)
        self.query, self.report, self.asked = query, report, asked
        if fetch is not None:
            self.attach(fetch)

    def attach(self, fetch: Fetch) -> None:
        """Give every hit the function that reads its events when they are needed."""
        for hit in self:
            object.__setattr__(hit, "fetch", fetch)

    @property
    def sequences(self) -> EventSequences:
        """The events of all hits, in their order."""
        return _fetched(self)

    def to_arrow(self) -> pa.Table:
        """Return one row per hit: rank, score, id, and group, window and metadata where hits have them.

        Metadata with one value per event are left out; `sequences` has them.
        """
        return hits_table.to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return `to_arrow` as a data frame of pandas."""
        return frame_of_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Return `to_arrow` as a data frame of polars."""
        return frame_of_polars(self.to_arrow())

    def __repr__(self) -> str:
        return hits_table.text(self)

    def _repr_html_(self) -> str:
        return hits_table.html(self)

    def plot(self) -> Figure:
        """Draw the query and its hits as time lines, one below the other; return a Matplotlib figure."""
        return hits_table.plot(self)


class AllHits(list[Hits]):
    """The hits of several queries, one `Hits` per query, in the order of the queries."""

    def to_arrow(self) -> pa.Table:
        """Return one row per hit: the query's id, and the columns of `Hits.to_arrow`."""
        return hits_table.all_to_arrow(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Return `to_arrow` as a data frame of pandas."""
        return frame_of_pandas(self.to_arrow())

    def to_polars(self) -> polars.DataFrame:
        """Return `to_arrow` as a data frame of polars."""
        return frame_of_polars(self.to_arrow())

    def __repr__(self) -> str:
        return hits_table.all_text(self)

    def _repr_html_(self) -> str:
        return hits_table.all_html(self)


def _fetched(hits: Sequence[Hit]) -> EventSequences:
    if not hits:
        return EventSequences.from_lists([])
    if (fetch := hits[0].fetch) is None:
        raise UserError("the events of these hits are not at hand; get them from the index: index.get(hit.id)")
    return fetch([hit.window or hit.id for hit in hits])
