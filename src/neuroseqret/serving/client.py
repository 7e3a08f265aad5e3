"""`connect`: an index on a server, with the verbs of `Index`.

For example:

    index = connect("http://127.0.0.1:8765")
    index.search(query, k=10)
"""

from __future__ import annotations

import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from neuroseqret.data.gaps import TimeUnitWarning
from neuroseqret.data.meaning import Meaning, UnknownMarks, unknown_marks_choice
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.data.windows import Events, part
from neuroseqret.errors import UserError
from neuroseqret.index.filters import Where
from neuroseqret.index.given import batches_of, columns_of, names_of
from neuroseqret.index.hit import AllHits, Hit, Hits
from neuroseqret.index.writer import Added
from neuroseqret.readers.coercion import ColumnMap, Given, as_sequences, one_or_many
from neuroseqret.serving import client_json
from neuroseqret.serving.transport import ServerError, Transport

if TYPE_CHECKING:
    from neuroseqret.explanation import Explanation

ARROW = "application/vnd.apache.arrow.stream"
#: Where the command line finds the key of a server.
KEY_VARIABLE = "NEUROSEQRET_KEY"
_QUERIES = 64  # per request


def url_of(place: object) -> str | None:
    """Return the address of a server, None if a place is not one; a `Path` has lost one of its slashes."""
    found = re.fullmatch(r"(https?):/+(.+)", str(place))
    return f"{found[1]}://{found[2]}" if found else None


def connect(url: str, key: str | None = None, *, timeout: float = 600.0) -> RemoteIndex:
    """Return the index that a server serves. `key` is by default the variable `NEUROSEQRET_KEY`."""
    made = RemoteIndex(Transport(url, key or os.environ.get(KEY_VARIABLE) or None, timeout))
    made.describe()
    return made


class RemoteIndex:
    """An index on a server; `connect` makes one. Its verbs take and return what those of `Index` do.

    Calls are tried again if the server is busy or the connection is lost: adding the same sequences twice adds them
    once. All errors are `UserError`s that repeat what the server said.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._described: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"RemoteIndex({self._transport.url!r})"

    @property
    def url(self) -> str:
        """The server's address."""
        return self._transport.url

    # ---------------------------------------------------------------- ask

    @overload
    def search(self, queries: EventSequence, k: int = 10, **options: Any) -> Hits: ...
    @overload
    def search(self, queries: EventSequences | Iterable[EventSequence], k: int = 10, **options: Any) -> AllHits: ...
    @overload
    def search(self, *, id: str, k: int = 10, events: Events | None = None, **options: Any) -> Hits: ...
    @overload
    def search(self, *, id: Sequence[str], k: int = 10, events: Events | None = None, **options: Any) -> AllHits: ...
    def search(  # type: ignore[misc]  # the overloads shorten the list of options
        self,
        queries: Given | None = None,
        k: int = 10,
        *,
        id: str | Sequence[str] | None = None,
        events: Events | None = None,
        columns: ColumnMap | None = None,
        relevant: Sequence[str] = (),
        not_relevant: Sequence[str] = (),
        rerank: bool | str | None = None,
        rerank_top: int | None = None,
        where: Where | None = None,
        exhaustive: bool = False,
        expand: bool = False,
        fraction: float | None = None,
        at_least: int | None = None,
        unknown_marks: UnknownMarks = "error",
        strict: bool = False,
    ) -> Hits | AllHits:
        """Return the k most relevant sequences; see `Index.search`.

        `rerank` is True or the name of one of the server's models. `relevant` and `not_relevant` are ids that were
        judged: the search moves towards the first and away from the second.
        """
        if (queries is None) == (id is None):
            raise UserError("give a query or the id of an indexed sequence: search(query) or search(id=...)")
        if id is not None:
            names, one = names_of(id), not _are_several(id)
            asked = client_json.indexed_queries(names, events)
            shown = self.get(names) if events is None else part(self.get(names), events)
        else:
            if events is not None:
                raise UserError("events takes a part of an indexed sequence; name it with id")
            many, one = one_or_many(queries, "queries", self._columns_of(queries, columns))
            shown = self.meaning.apply(many, unknown_marks)
            asked = client_json.queries_by_events(shown, self._known)
        judged = {"relevant": list(relevant), "not_relevant": list(not_relevant)}
        options = {
            "k": int(k),
            "where": dict(where) if isinstance(where, Mapping) else where,
            "rerank": False if rerank is None else rerank,
            "rerank_top": rerank_top,
            "expand": expand,
            "exhaustive": exhaustive,
            "fraction": fraction,
            "at_least": at_least,
            "unknown_marks": unknown_marks,
            "strict": strict,
        }
        found: list[Hits] = []
        for begin in range(0, len(asked), _QUERIES):
            more = {name: ids for name, ids in judged.items() if ids}
            some = [{**query, **more} for query in asked[begin : begin + _QUERIES]]
            reply = self._post("/v1/search", {"queries": some, **options})
            _warn(reply)
            found += [client_json.hits_of(result, self._known, self.get) for result in reply["results"]]
        for hits, query in zip(found, shown, strict=True):
            hits.asked = query
        return found[0] if one else AllHits(found)

    def _columns_of(self, given: object, columns: ColumnMap | None) -> ColumnMap | None:
        """Return the column map of a frame: as given, or as the training data had it."""
        return columns_of(given, columns, self._known.get("training_columns"))

    def explain(self, query: Given, hit: Hit | str, *, rerank: bool | str | None = None) -> Explanation:
        """Split the score of a query and a hit over pairs of events; see `neuroseqret.explain`.

        `rerank` names the model that reranked the hit, as in `search`.
        """
        from neuroseqret.explanation import Explanation  # here, as it imports torch

        many = self.meaning.apply(as_sequences(query, "query"))
        id = hit if isinstance(hit, str) else hit.window or hit.id
        (row,) = client_json.queries_by_events(many[:1], self._known)
        asked = {"query": row, "hits": [id], "pairs": True, "rerank": rerank or False}
        reply = self._post("/v1/explain", asked)
        why = reply["explanations"][0]
        pairs = np.array(why["pairs"], np.float64).reshape(len(many[0]), -1)
        matrix = np.zeros((pairs.shape[0] + 1, pairs.shape[1] + 1))
        matrix[:-1, :-1] = pairs
        matrix[:-1, -1] = np.array(why["of_query_events"]) - pairs.sum(1)
        matrix[-1, :-1] = np.array(why["of_hit_events"]) - pairs.sum(0)
        matrix[-1, -1] = why["score"] - why["similarity"] - matrix.sum()
        return Explanation(many[0], self.get(id)[0], why["score"], matrix, why["parts"], similarity=why["similarity"])

    def get(self, ids: str | Sequence[str]) -> EventSequences:
        """Return the stored sequences with these ids, in their order."""
        names = names_of(ids)
        rows = [self._transport.call("GET", f"/v1/sequences/{quote(name, safe='')}") for name in names]
        return client_json.sequences_of(rows, self.meaning, self._known)

    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it searches, as the server tells it."""
        return {"url": self.url, **self.describe()}

    def __len__(self) -> int:
        """Return the number of sequences, or of windows if the index holds windows."""
        return int(self.describe()["sequences"])

    def describe(self) -> dict[str, Any]:
        """Ask the server anew what it serves."""
        self._described = self._transport.call("GET", "/v1/index")
        return dict(self._described)

    @property
    def _known(self) -> dict[str, Any]:
        """What the server said last of what it serves."""
        return self._described or self.describe()

    @property
    def meaning(self) -> Meaning:
        """What marks and times mean in the index."""
        known = self._known
        names = known["mark_names"]
        return Meaning(known["marks"], None if names is None else tuple(names), known["time_unit"])

    # ---------------------------------------------------------------- change

    def add(
        self,
        sequences: Given | Iterable[EventSequences],
        upsert: bool = False,
        *,
        columns: ColumnMap | None = None,
        unknown_marks: UnknownMarks = "error",
        strict: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Added:
        """Add sequences, or batches of them; see `Index.add`. `progress` is called with the number sent so far.

        Batches are sent one by one, each in a request of its own that is tried again if the connection is lost.
        """
        done, sent = Added(), 0
        choice = unknown_marks_choice(unknown_marks)
        for batch in batches_of(sequences, self._columns_of(sequences, columns)):
            reply = self._transport.call(
                "PUT" if upsert else "POST",
                "/v1/sequences",
                _stream(self.meaning.apply(batch, choice)),
                ARROW,
                parameters={"unknown_marks": "keep", "strict": str(strict).lower()},  # marks are decided here
            )
            _warn(reply)
            done += Added(reply["added"], reply["already_there"], reply["replaced"])
            sent += len(batch)
            if progress is not None:
                progress(sent)
        return done

    def upsert(
        self,
        sequences: Given | Iterable[EventSequences],
        *,
        columns: ColumnMap | None = None,
        unknown_marks: UnknownMarks = "error",
        strict: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Added:
        """Add sequences, and replace those whose id is in the index already."""
        more: dict[str, Any] = {"unknown_marks": unknown_marks, "strict": strict, "progress": progress}
        return self.add(sequences, True, columns=columns, **more)

    def unknown(self, ids: str | Sequence[str]) -> list[str]:
        """Return those of the ids that are not in the index, each once."""
        missing = []
        for name in dict.fromkeys(names_of(ids)):
            try:
                self._transport.call("GET", f"/v1/sequences/{quote(name, safe='')}")
            except ServerError as error:
                if error.status != 404:
                    raise
                missing.append(name)
        return missing

    def remove(self, ids: str | Sequence[str]) -> int:
        """Remove sequences by id, skip unknown ids, and return how many were removed."""
        names = names_of(ids)
        return int(self._post("/v1/sequences/remove", {"ids": names})["removed"]) if names else 0

    def feedback(self, query: Given | str, judgements: Mapping[str, bool | None], user: str | None = None) -> int:
        """Store which hits of a query (or of the sequence with this id) are relevant; None takes a judgement back."""
        asked: dict[str, Any] = {"id": query}
        if not isinstance(query, str):
            many = self.meaning.apply(as_sequences(query, "query"), "keep")
            asked = client_json.queries_by_events(many[:1], self._known)[0]
        judged = [{"id": id, "relevant": relevant} for id, relevant in judgements.items()]
        body = {"query": asked, "judgements": judged, "user": user}
        return int(self._post("/v1/feedback", body, repeatable=False)["stored"])

    def _post(self, path: str, body: Any, repeatable: bool = True) -> Any:
        try:
            content = json.dumps(body, allow_nan=False, default=str).encode()
        except ValueError as error:
            raise UserError("a time is not finite; repair the sequence") from error
        return self._transport.call("POST", path, content, repeatable=repeatable)


def _are_several(ids: object) -> bool:
    return isinstance(ids, Iterable) and not isinstance(ids, (str, pa.Scalar))


def _warn(reply: Mapping[str, Any]) -> None:
    """Repeat the server's warnings here, where the caller sees them."""
    for said in reply.get("warnings", []):
        warnings.warn(said, TimeUnitWarning, stacklevel=3)


def _stream(batch: EventSequences) -> bytes:
    table, sink = batch.to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


__all__ = ["RemoteIndex", "ServerError", "connect", "url_of"]
