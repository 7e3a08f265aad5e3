"""Hits as a table: Arrow, text, HTML with time lines, and a plot of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neuroseqret.data.durations import number
from neuroseqret.data.sequence import EventSequence
from neuroseqret.data.splits import SPLITS
from neuroseqret.data.timelines import colours_of, figure, html_table, legend, length_of, svg
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from neuroseqret.index.hit import Hit, Hits

_MOST = 30  # hits shown in a notebook or a terminal
_QUERIES = 5  # queries whose hits are shown
_TYPES = {"rank": pa.int64(), "score": pa.float64(), "id": pa.string()}


def metadata_columns(hits: Sequence[Hit]) -> list[str]:
    """Return the names of the metadata that tables show.

    Columns with one value per event are left out, because they have no end, and so is the `split` of a data folder's
    queries, which says nothing about a hit.
    """
    found: dict[str, bool] = {}
    for hit in hits:
        for name, value in hit.metadata.items():
            told = not isinstance(value, (list, tuple, dict)) and not (name == "split" and value in (None, *SPLITS))
            found[name] = told and found.get(name, True)
    return [name for name, told in found.items() if told]


def to_arrow(hits: Hits) -> pa.Table:
    """Return one row per hit; a column that no hit has a value for is left out."""
    shown = metadata_columns(hits)
    return _table([_values(hit, shown) for hit in hits], _TYPES)


def all_to_arrow(found: Iterable[Hits]) -> pa.Table:
    """Return one row per hit of several queries; the first column is the query."""
    found = list(found)
    shown = metadata_columns([hit for hits in found for hit in hits])
    rows = [{**_values(hit, shown), "query": hits.query} for hits in found for hit in hits]
    return _table(rows, {"query": pa.string(), **_TYPES})


def _values(hit: Hit, shown: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {"rank": hit.rank, "score": hit.score, "id": hit.id}
    values |= {name: x for name, x in hit.as_dict().items() if name not in (*values, "metadata")}
    for name in shown:
        values.setdefault(name, hit.metadata.get(name))
    return values


def _table(rows: list[dict[str, Any]], types: Mapping[str, pa.DataType]) -> pa.Table:
    names = dict.fromkeys([*types, *(name for row in rows for name in row)])
    return pa.table({name: pa.array([row.get(name) for row in rows], types.get(name)) for name in names})


def text(hits: Hits) -> str:
    """Return a short table of rank, score, id and group."""
    shown = hits[:_MOST]
    rank = max((len(str(hit.rank)) for hit in shown), default=0)
    name = max((len(_name(hit)) for hit in shown), default=0)
    lines = [f"{hit.rank:>{rank}}  {hit.score:.4f}  {_name(hit):<{name}}  {hit.group or ''}".rstrip() for hit in shown]
    more = [f"... and {len(hits) - _MOST:,} more"] if len(hits) > _MOST else []
    return "\n".join([heading(hits), *lines, *more])


def all_text(found: Sequence[Hits]) -> str:
    """Return the tables of the first queries."""
    more = [f"... and the hits of {len(found) - _QUERIES:,} more queries"] if len(found) > _QUERIES else []
    return "\n\n".join([*(text(hits) for hits in found[:_QUERIES]), *more]) or "no queries"


def all_html(found: Sequence[Hits]) -> str:
    """Return the HTML tables of the first queries."""
    more = f"<small>and the hits of {len(found) - _QUERIES:,} more queries</small>" if len(found) > _QUERIES else ""
    return f"<div>{''.join(html(hits) for hits in found[:_QUERIES])}{more}</div>"


def _name(hit: Hit) -> str:
    return hit.window or hit.id


def heading(hits: Hits) -> str:
    """Return whose hits these are and how they were found."""
    report = hits.report
    reranked = f", {report.reranked:,} reranked" if report.reranked else ""
    found = f"{len(hits)} hit{'' if len(hits) == 1 else 's'} of {hits.query!r}"
    if not report.corpus:
        return f"{found}: no sequence of the index matches"
    return f"{found}: {report.comparisons:,} of {report.corpus:,} compared ({report.method}{reranked})"


def html(hits: Hits) -> str:
    """Return an HTML table with a time line per hit, the query first; without lines if the events are not at hand."""
    shown = hits[:_MOST]
    sequences = _events(hits)
    drawn = [one for one in (hits.asked, *sequences) if one is not None]
    colours = colours_of(drawn)
    rows: list[list[Any]] = []
    if hits.asked is not None:
        rows.append(["query", "", *_row(hits.asked, hits.query, hits.asked.group, colours)])
    for at, hit in enumerate(shown):
        sequence = sequences[at] if sequences else None
        rows.append([str(hit.rank), f"{hit.score:.3f}", *_row(sequence, _name(hit), hit.group, colours)])
    more = f"<br><small>and {len(hits) - _MOST:,} more</small>" if len(hits) > _MOST else ""
    table = html_table(("rank", "score", "id", "group", "events", "", "duration"), rows)
    return f"<div>{escape(heading(hits))}{table}{legend(drawn, colours)}{more}</div>"


def _row(sequence: EventSequence | None, name: str, group: str | None, colours: dict[int, str]) -> list[str]:
    if sequence is None:
        return [escape(name), escape(group or ""), "", "", ""]
    return [
        escape(name),
        escape(group or ""),
        number(len(sequence)),
        svg(sequence, colours),
        escape(length_of(sequence)),
    ]


def _events(hits: Hits) -> list[EventSequence]:
    """Return the events of the hits, nothing if they cannot be read any more."""
    try:
        return list(type(hits)(hits[:_MOST], hits.query, hits.report).sequences)
    except UserError:
        return []


def plot(hits: Hits) -> Figure:
    """Draw the query and its hits."""
    sequences = list(hits.sequences)
    lines = [] if hits.asked is None else [hits.asked]
    own = [] if hits.asked is None else [_label("query", hits.query, hits.asked.group)]
    labels = [_label(f"{hit.rank}.  {hit.score:.2f}", _name(hit), hit.group) for hit in hits]
    title = f"{hits.query} and its {len(hits)} best hits; every line has its own time scale"
    return figure([*lines, *sequences], [*own, *labels], title)


def _label(first: str, name: str, group: str | None) -> str:
    shown = name if len(name) <= 90 else name[:45] + "…" + name[-44:]
    return f"{first}  {shown}" + (f"  ({group[:20]})" if group else "")
