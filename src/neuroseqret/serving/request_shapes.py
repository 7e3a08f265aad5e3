"""Bodies of requests as typed models; `docs/server.md` explains them in words."""

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
WITH_VALUES: dict[str, Any] = {**EXAMPLE, "values": {"amount": [9.5, None, 20.0]}}
Values = dict[Annotated[str, Field(min_length=1, max_length=1024)], list[float | None]]
_VALUES = "Numbers of events, such as amounts, by name: one per event, null where it is missing."


class Strict(BaseModel):
    """A request: a field that does not exist is a mistake, not something to ignore."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, str_strip_whitespace=False)


class Sequence(Strict):
    """One event sequence."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"id": "s1", **EXAMPLE, "group": "shop"}, {"id": "s2", **WITH_VALUES}]}
    )

    id: Id
    times: list[Time] = Field(min_length=1, description="One per event, not decreasing: numbers or dates.")
    marks: list[Mark] = Field(min_length=1, description="One per event: names, or numbers from 0.")
    start: Time | None = Field(None, description="Start of the observation.")
    end: Time | None = Field(None, description="End of the observation.")
    group: str | None = Field(None, max_length=1024)
    metadata: dict[str, Any] | None = Field(None, max_length=256, description="Further columns, by name.")
    values: Values | None = Field(None, max_length=64, description=_VALUES)


class Judged(Strict):
    """What a query may carry: sequences that were judged for it."""

    relevant: list[Id] = Field([], max_length=1000, description="Move the search towards these.")
    not_relevant: list[Id] = Field([], max_length=1000, description="Move the search away from these.")


class EventsQuery(Judged):
    """A query given by its events."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE, WITH_VALUES]})

    times: list[Time] = Field(min_length=1)
    marks: list[Mark] = Field(min_length=1)
    id: Id = "query"
    start: Time | None = None
    end: Time | None = None
    values: Values | None = Field(None, max_length=64, description=f"{_VALUES} Only those that the model reads.")


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
        json_schema_extra={
            "examples": [
                {"query": EXAMPLE, "k": 10},
                {"queries": [EXAMPLE, EXAMPLE], "expand": True},
                {"query": WITH_VALUES, "fraction": 0.05, "at_least": 5000, "strict": True},
            ]
        }
    )

    query: Query | None = None
    queries: list[Query] | None = Field(None, min_length=1)
    k: int = Field(10, ge=1, description="Number of hits per query.")
    where: Where | None = Field(None, description="Condition on metadata: SQL text or a mapping.")
    rerank: bool | str = Field(False, description="Rerank with the server's first model, or with the one named.")
    rerank_top: int | None = Field(None, ge=1, description="Number of hits to rerank.")
    expand: bool = Field(False, description="Search again with the query moved towards its best hits.")
    exhaustive: bool = Field(False, description="Compare with every sequence.")
    fraction: float | None = Field(None, gt=0, le=1, description="Share of the sequences to compare with.")
    at_least: int | None = Field(None, ge=1, description="Number of sequences to compare with at least.")
    fields: list[str] | None = Field(None, max_length=256, description="Columns to return; 'events' adds the events.")
    explain: bool = Field(False, description="Say for every hit why it matches.")
    unknown_marks: UnknownMarks = "error"
    strict: bool = Field(False, description="Refuse times that look like another unit than the model's.")

    @model_validator(mode="after")
    def _one_or_many(self) -> Self:
        if (self.query is None) == (self.queries is None):
            raise ValueError("give either 'query' or 'queries'")
        return self

    @property
    def asked(self) -> list[EventsQuery | IndexedQuery]:
        """The queries, one or many."""
        return [self.query] if self.query is not None else list(self.queries or [])


class ExplainRequest(Strict):
    """A query and the hits whose scores are to be split over events."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": EXAMPLE, "hits": ["s1"], "pairs": True}]})

    query: Query
    hits: list[Id] = Field(min_length=1)
    pairs: bool = Field(True, description="Return the part of every pair of events.")
    rerank: bool | str = Field(False, description="Explain the score of this second stage; as in a search.")
    unknown_marks: UnknownMarks = "error"


class EmbedRequest(Strict):
    """Sequences to embed."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sequences": [{"id": "s1", **EXAMPLE}]}]})

    sequences: list[Sequence] = Field(min_length=1)
    role: Literal["query", "corpus"] = "query"
    unknown_marks: UnknownMarks = "error"


class AddRequest(Strict):
    """A few sequences to add; many go as Arrow, Parquet or NDJSON."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"sequences": [{"id": "s1", **EXAMPLE}]},
                {"sequences": [{"id": "s2", **WITH_VALUES, "metadata": {"title": "first visit"}}]},
            ]
        }
    )

    sequences: list[Sequence] = Field(min_length=1)


class RemoveRequest(Strict):
    """Ids of sequences to remove."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ids": ["s1", "s2"]}]})

    ids: list[Id] = Field(min_length=1, max_length=100_000)


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
