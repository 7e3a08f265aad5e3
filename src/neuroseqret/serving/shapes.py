"""Requests and replies of the interface as typed models; `docs/server.md` explains them in words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from typing_extensions import Self

Id = Annotated[str, Field(min_length=1, max_length=1024, examples=["s1"])]
Time = float | int | str  # a number, or a date
Mark = int | str
Where = str | dict[str, Any]
UnknownMarks = Literal["error", "drop", "keep"]
EXAMPLE: dict[str, Any] = {"times": [0.0, 1.5, 4.0], "marks": [0, 1, 0]}


class Strict(BaseModel):
    """A request: a field that does not exist is a mistake, not something to ignore."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


class Sequence(Strict):
    """One event sequence."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "s1", **EXAMPLE, "group": "shop"}]})

    id: Id
    times: list[Time] = Field(min_length=1, description="One per event, not decreasing: numbers or dates.")
    marks: list[Mark] = Field(min_length=1, description="One per event: names, or numbers from 0.")
    start: Time | None = Field(None, description="Start of the observation.")
    end: Time | None = Field(None, description="End of the observation.")
    group: str | None = Field(None, max_length=1024)
    metadata: dict[str, Any] | None = Field(None, max_length=256, description="Further columns, by name.")


class Judged(Strict):
    """What a query may carry: sequences that were judged for it."""

    relevant: list[Id] = Field([], max_length=1000, description="Move the search towards these.")
    not_relevant: list[Id] = Field([], max_length=1000, description="Move the search away from these.")


class EventsQuery(Judged):
    """A query given by its events."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    times: list[Time] = Field(min_length=1)
    marks: list[Mark] = Field(min_length=1)
    id: Id = "query"
    start: Time | None = None
    end: Time | None = None


class IndexedQuery(Judged):
    """A query that is a sequence of the index, or a part of one."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"id": "s1"}, {"id": "s1", "events": [5, 20]}]})

    id: Id
    events: tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=1)]] | None = Field(
        None, description="First event and the one after the last; the whole sequence by default."
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.events is not None and self.events[0] >= self.events[1]:
            raise ValueError("events must be [first, stop] with first < stop")
        return self


def _form(value: Any) -> str:
    fields = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    return "events query" if "times" in fields or "marks" in fields else "indexed query"


Query = Annotated[
    Annotated[EventsQuery, Tag("events query")] | Annotated[IndexedQuery, Tag("indexed query")], Discriminator(_form)
]


class SearchRequest(Strict):
    """One query or several, and how to search."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": EXAMPLE, "k": 10}, {"queries": [EXAMPLE, EXAMPLE], "expand": True}]}
    )

    query: Query | None = None
    queries: list[Query] | None = Field(None, min_length=1)
    k: int = Field(10, ge=1, description="Number of hits per query.")
    where: Where | None = Field(None, description="Condition on metadata: SQL text or a mapping.")
    rerank: bool | str = Field(False, description="Rerank with the server's first model, or with the one named.")
    rerank_top: int | None = Field(None, ge=1, description="Number of hits to rerank.")
    expand: bool = Field(False, description="Search again with the query moved towards its best hits.")
    exhaustive: bool = Field(False, description="Compare with every sequence.")
    fields: list[str] | None = Field(None, max_length=256, description="Columns to return; 'events' adds the events.")
    explain: bool = Field(False, description="Say for every hit why it matches.")
    unknown_marks: UnknownMarks = "error"

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        if (self.query is None) == (self.queries is None):
            raise ValueError("give either 'query' or 'queries'")
        return self

    @property
    def asked(self) -> list[EventsQuery | IndexedQuery]:
        """The queries, one or many."""
        return [self.query] if self.query is not None else list(self.queries or [])


class StrongPair(BaseModel):
    """A pair of events and the part of the score that they give together."""

    query_event: int
    hit_event: int
    part: float


class Explained(BaseModel):
    """A score split over events."""

    id: str
    score: float
    similarity: float
    parts: dict[str, float]
    of_query_events: list[float]
    of_hit_events: list[float]
    strongest: list[StrongPair]
    pairs: list[list[float]] | None = None


class FoundHit(BaseModel):
    """One hit; the last five fields are there in an index of windows, the events if `fields` names them."""

    rank: int
    score: float
    id: str
    group: str | None = None
    metadata: dict[str, Any] | None = None
    times: list[float] | None = None
    marks: list[Mark] | None = None
    explanation: Explained | None = None
    window: str | None = None
    offset: int | None = None
    stop: int | None = None
    start: float | None = None
    end: float | None = None


class QueryShown(BaseModel):
    """The query of a result."""

    id: str
    events: tuple[int, int] | None = None
    times: list[float] | None = None
    marks: list[Mark] | None = None
    start: float | None = None
    end: float | None = None


class Result(BaseModel):
    """The hits of one query, and what was compared."""

    query: QueryShown
    hits: list[FoundHit]
    method: str
    corpus: int
    comparisons: int
    reranked: int


class SearchReply(BaseModel):
    """One result per query."""

    results: list[Result]
    milliseconds: dict[str, float]
    batch: int
    version: int
    warnings: list[str] = Field([], description="Such as times that look like another unit than the model's.")


class ExplainRequest(Strict):
    """A query and the hits whose scores are to be split over events."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": EXAMPLE, "hits": ["s1"], "pairs": True}]})

    query: Query
    hits: list[Id] = Field(min_length=1)
    pairs: bool = Field(True, description="Return the part of every pair of events.")
    rerank: bool | str = Field(False, description="Explain the score of this second stage; as in a search.")
    unknown_marks: UnknownMarks = "error"


class ExplainReply(BaseModel):
    """One explanation per hit."""

    explanations: list[Explained]


class EmbedRequest(Strict):
    """Sequences to embed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sequences": [{"id": "s1", **EXAMPLE}]}]})

    sequences: list[Sequence] = Field(min_length=1)
    role: Literal["query", "corpus"] = "query"
    unknown_marks: UnknownMarks = "error"


class EmbedReply(BaseModel):
    """One unit vector per sequence."""

    dimension: int
    embeddings: list[list[float]]


class AddRequest(Strict):
    """A few sequences to add; many go as Arrow, Parquet or NDJSON."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sequences": [{"id": "s1", **EXAMPLE}]}]})

    sequences: list[Sequence] = Field(min_length=1)


class RowError(BaseModel):
    """A line of an NDJSON body that was not added."""

    row: int
    id: str | None = None
    problem: str


class AddReply(BaseModel):
    """What an add or upsert did; all of it is safe on disk."""

    added: int
    already_there: int
    replaced: int
    version: int
    errors: list[RowError] = []
    warnings: list[str] = []


class RemoveRequest(Strict):
    """Ids of sequences to remove."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["s1", "s2"]}]})

    ids: list[Id] = Field(min_length=1, max_length=100_000)


class RemoveReply(BaseModel):
    """How many sequences were removed."""

    removed: int


class SequenceShown(BaseModel):
    """A stored sequence; the events are there if they were asked for."""

    id: str
    times: list[float] | None = None
    marks: list[Mark] | None = None
    start: float | None = None
    end: float | None = None
    group: str | None = None
    metadata: dict[str, Any] | None = None
    window: str | None = None
    offset: int | None = None


class Listing(BaseModel):
    """A page of the corpus."""

    sequences: list[SequenceShown]
    next: str | None


class Judgement(Strict):
    """Whether a sequence is relevant to a query; null takes an earlier judgement back."""

    id: Id
    relevant: bool | None


class FeedbackRequest(Strict):
    """Judgements of hits of one query."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"query": EXAMPLE, "judgements": [{"id": "s1", "relevant": True}]}]}
    )

    query: Query
    judgements: list[Judgement] = Field(min_length=1, max_length=1000)
    user: str | None = Field(None, max_length=200)


class FeedbackReply(BaseModel):
    """How many judgements were stored; they are safe on disk."""

    stored: int


class StoredJudgement(BaseModel):
    """A judgement with who gave it and when."""

    query: QueryShown
    id: str
    relevant: bool | None
    user: str | None = None
    time: str


class FeedbackListing(BaseModel):
    """A page of judgements."""

    judgements: list[StoredJudgement]
    next: str | None


class Column(BaseModel):
    """A column that conditions may name."""

    name: str
    type: Literal["text", "number", "boolean", "date", "other"]


class IndexReply(BaseModel):
    """What is served, and what the caller may do."""

    name: str
    model: str
    preset: str | None
    sequences: int
    windowed: bool
    dimension: int
    marks: int | None
    mark_names: list[str] | None
    time_unit: str | None
    candidates: str
    columns: list[Column]
    explainable: bool
    rerank: list[str]
    version: int
    library_version: str
    scopes: list[str]
    caller: str | None = Field(None, description="Name of the key, under which judgements are stored.")
    limits: dict[str, int]


class Counted(BaseModel):
    """A value of a column and how many sequences have it."""

    value: Any
    sequences: int


class ColumnStatistics(Column):
    """A column and its most frequent values."""

    distinct: int
    missing: int
    min: Any = None
    max: Any = None
    values: list[Counted]


class MarkCount(BaseModel):
    """A mark and how many events have it."""

    name: Mark
    events: int


class StatisticsReply(BaseModel):
    """What the corpus holds."""

    sequences: int
    events: int
    version: int
    lengths: dict[str, Any]
    times: dict[str, Any]
    marks: list[MarkCount]
    groups: list[Counted]
    columns: list[ColumnStatistics]
    sampled: int


class ProblemDocument(BaseModel):
    """An error (RFC 9457): what is wrong and what to do."""

    type: str
    title: str
    status: int
    detail: str
    request: str | None = None
