"""The hits of `neuroseqret search` as text: a table for people, JSON and TREC lines for programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from neuroseqret.cli.console import out, print_json, print_record, remarks, window_width
from neuroseqret.cli.text_table import Column, lines_of
from neuroseqret.errors import visible

if TYPE_CHECKING:
    from neuroseqret.index import Hit, Hits

FORMATS = ("table", "json", "trec")


def print_hits(
    found: Sequence[Hits],
    groups: Sequence[str | None],
    form: str,
    *,
    where: str | None = None,
    time_unit: str | None = None,
) -> None:
    """Print the hits of every query; `groups` are those of the queries. An empty answer says why it is empty."""
    if form == "trec":
        for line in trec_lines(found):
            print_record(line)
    elif form == "json":
        answer = _finite([as_json(hits, group) for hits, group in zip(found, groups, strict=True)])
        print_json(answer)
    else:
        _print_tables(found, groups, where, time_unit)
        return
    if found and not any(found):
        remarks.print(f"no hits: {why_empty(found[0], where)}", markup=False)


def _print_tables(
    found: Sequence[Hits], groups: Sequence[str | None], where: str | None, time_unit: str | None
) -> None:
    left_out: dict[str, None] = {}
    for at, (hits, group) in enumerate(zip(found, groups, strict=True)):
        if at:
            out.print()
        if not hits:
            out.print(f"{_named(hits, group)}: {why_empty(hits, where)}", markup=False, soft_wrap=True)
            continue
        for line in heading(hits, group, window_width()):
            out.print(line, markup=False, soft_wrap=True)
        lines, hidden = lines_of(columns_of(hits, time_unit), window_width())
        left_out |= dict.fromkeys(hidden)
        for line in lines:
            out.print(line, markup=False, soft_wrap=True)
    if left_out:
        remarks.print(f"not shown: {', '.join(left_out)}; use --format json or a wider terminal", markup=False)


def heading(hits: Hits, group: str | None, width: int | None = None) -> list[str]:
    """Return what is above a table of hits: the query, its group, and how much of the index was compared with it.

    This is one line, or two if the terminal is narrower.
    """
    report, named = hits.report, _named(hits, group)
    compared = f"compared with {report.comparisons:,} of {report.corpus:,} ({report.method})"
    whole = f"{named}: {compared}"
    return [whole] if width is None or cell_len(visible(whole)) <= width else [f"{named}:", f"  {compared}"]


def _named(hits: Hits, group: str | None) -> str:
    return f"query {hits.query}" + (f" ({group})" if group is not None else "")


def why_empty(hits: Hits, where: str | None) -> str:
    """Say why a query has no hits."""
    if hits.report.corpus:
        return "no sequence is near enough; try --exhaustive"
    return "the index holds no other sequence" if where is None else f"no sequence matches {where}"


def columns_of(hits: Sequence[Hit], time_unit: str | None = None) -> list[Column]:
    """Return the columns of a table of hits."""
    from neuroseqret.data.durations import span
    from neuroseqret.index.hits_table import metadata_columns

    columns = [
        Column("rank", [str(hit.rank) for hit in hits], right=True, essential=True),
        Column("score", [f"{hit.score:.4f}" for hit in hits], right=True, essential=True),
        Column("id", [hit.id for hit in hits], essential=True),
    ]
    if any(hit.group is not None for hit in hits):
        columns.append(Column("group", [hit.group or "" for hit in hits]))
    if any(hit.window is not None for hit in hits):
        columns.append(Column("events", [f"{hit.offset} to {hit.stop}" for hit in hits]))
        columns.append(Column("times", [span(hit.start or 0.0, hit.end or 0.0, time_unit) for hit in hits]))
    for name in metadata_columns(hits):
        values = [hit.metadata.get(name) for hit in hits]
        columns.append(Column(name, ["" if value is None else _in_one_line(value) for value in values]))
    return columns


def _in_one_line(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


def trec_lines(found: Sequence[Hits]) -> list[str]:
    """Return the hits as lines of a TREC run."""
    from neuroseqret.readers.trec import run_lines

    return list(run_lines({hits.query: {hit.id: hit.score for hit in hits} for hits in found}))


def as_json(hits: Hits, group: str | None = None) -> dict[str, object]:
    """Return the hits of one query, and how they were found, as a JSON object."""
    report = hits.report
    return {
        "query": hits.query,
        **({} if group is None else {"group": group}),
        "method": report.method,
        "corpus": report.corpus,
        "comparisons": report.comparisons,
        "reranked": report.reranked,
        "hits": [hit.as_dict() for hit in hits],
    }


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not have (NaN, infinity) by None."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
