"""Replies as typed models; `docs/server.md` explains them in words."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from neuroseqret.serving.request_shapes import Mark


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
    values: dict[str, list[float | None]] | None = None
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
    values: dict[str, list[float | None]] | None = None


class Result(BaseModel):
    """The hits of one query, and what was compared."""

    query: QueryShown
    hits: list[FoundHit]
    method: str
    corpus: int
    comparisons: int
    reranked: int
    centres: int = Field(0, description="Centres of cells that the query was compared with besides.")


class SearchReply(BaseModel):
    """One result per query."""

    results: list[Result]
    milliseconds: dict[str, float]
    batch: int
    version: int
    warnings: list[str] = Field([], description="Such as times that look like another unit than the model's.")


class ExplainReply(BaseModel):
    """One explanation per hit."""

    explanations: list[Explained]


class EmbedReply(BaseModel):
    """One unit vector per sequence."""

    dimension: int
    embeddings: list[list[float]]


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
    values: dict[str, list[float | None]] | None = None
    window: str | None = None
    offset: int | None = None


class Listing(BaseModel):
    """A page of the corpus."""

    sequences: list[SequenceShown]
    next: str | None


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
    values: list[str] = Field([], description="Numbers of events that the model reads beside times and marks.")
    training_columns: dict[str, str | None] | None = Field(
        None, description="What the columns of the training data were called: id, time, mark, group, start, end."
    )
    time_format: str | None = Field(
        None, description="How dates were written in the training data, in the codes of strptime; null if as ISO 8601."
    )
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
