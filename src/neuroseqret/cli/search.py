"""`neuroseqret search`: find the sequences of an index that are relevant to queries, and print them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out, progress, remarks
from neuroseqret.cli.event_files import ANY_FORMAT, UNKNOWN_MARKS
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.index import Hits, Index

FORMATS = ("table", "json", "trec")


def search(
    folder: Path = typer.Argument(..., metavar="INDEX", help="Index folder."),
    sequences: Path = typer.Argument(..., metavar="SEQUENCES", help=f"File of query sequences {ANY_FORMAT}."),
    k: int = typer.Option(10, "-k", metavar="N", min=1, help="Number of hits per query."),
    rerank: Path | None = typer.Option(
        None, "--rerank", metavar="MODEL", help="Model folder; this model puts the best hits into a new order."
    ),
    rerank_top: int | None = typer.Option(
        None, "--rerank-top", metavar="N", min=1, help="Number of hits to rerank. Default: 100, or k if k is larger."
    ),
    form: str = typer.Option(
        "table", "--format", metavar="NAME", help=f"Output format: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
    ),
    where: str | None = typer.Option(
        None,
        "--where",
        metavar="CONDITION",
        help="Return only hits whose metadata meet this SQL condition, for example \"role = 'GK'\".",
    ),
    exhaustive: bool = typer.Option(False, "--exhaustive", help="Compare the query with every sequence of the index."),
    expand: bool = typer.Option(
        False, "--expand", help="Search twice; the second time with the query moved towards its best hits."
    ),
    explain: Path | None = typer.Option(
        None,
        "--explain",
        metavar="DIR",
        help="Write pictures that explain the best hit of each query to this folder.",
    ),
    unknown_marks: str = UNKNOWN_MARKS,
) -> None:
    """Search an index with query sequences."""
    from neuroseqret.data.meaning import unknown_marks_choice
    from neuroseqret.index import Index
    from neuroseqret.readers import read

    if form not in FORMATS:
        raise UserError(f"no format is called {form!r}; choose one of {', '.join(FORMATS)}")
    index = Index.open(folder)
    if explain is not None:
        from neuroseqret.explanation import explainable

        explainable(index.model)  # report the error before the search, not after it
    choice = unknown_marks_choice(unknown_marks)
    asked = index.config.meaning.apply(read(sequences), choice, sequences)
    found = index.search(
        asked,
        k,
        rerank=rerank,
        rerank_top=rerank_top,
        where=where,
        exhaustive=exhaustive,
        expand=expand,
        unknown_marks="keep",  # decided above, where the file is known
    )
    _print(found, form)
    if explain is not None:
        _explain(index, asked, found, explain)
        if rerank is not None:
            remarks.print(f"the pictures explain the score of the index's model, not that of {rerank}", markup=False)


def _print(found: list[Hits], form: str) -> None:
    if form == "trec":
        for line in trec_lines(found):
            typer.echo(line)
    elif form == "json":
        answer = _finite([as_json(hits) for hits in found])
        typer.echo(json.dumps(answer, indent=1, ensure_ascii=False, allow_nan=False, default=str))
    else:
        for hits in found:
            out.print(heading(hits), markup=False, soft_wrap=True)
            out.print(as_table(hits))


def _explain(index: Index, asked: EventSequences, found: list[Hits], folder: Path) -> None:
    """Write one PNG per query that has a hit, named `ROW-QUERY.png`; print a note if a hit cannot be explained."""
    from neuroseqret.explanation import explain, picture

    folder.mkdir(parents=True, exist_ok=True)
    answered = [row for row, hits in enumerate(found) if hits]
    best = index.get([found[row][0].window or found[row][0].id for row in answered])
    written = 0
    for at, row in progress(enumerate(answered), "explaining", len(answered)):
        name = re.sub(r"[^\w.-]+", "_", found[row].query)[:100]  # file names allow fewer characters than ids
        try:
            why = explain(index.model, asked[row], best[at])
        except UserError as error:
            remarks.print(f"neuroseqret: note: no explanation for query {found[row].query}: {error}", markup=False)
            continue
        picture(why, folder / f"{row}-{name}.png")
        written += 1
    remarks.print(f"explanations written to {folder}: {written:,}", markup=False)


def trec_lines(found: list[Hits]) -> list[str]:
    """Return the hits as lines of a TREC run."""
    from neuroseqret.readers.trec import run_lines

    return list(run_lines({hits.query: {hit.id: hit.score for hit in hits} for hits in found}))


def _finite(value: Any) -> Any:
    """Replace numbers that JSON does not have (NaN, infinity) by None."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def as_json(hits: Hits) -> dict[str, object]:
    """Return the hits of one query, and how they were found, as a JSON object."""
    report = hits.report
    return {
        "query": hits.query,
        "method": report.method,
        "corpus": report.corpus,
        "comparisons": report.comparisons,
        "reranked": report.reranked,
        "hits": [hit.as_dict() for hit in hits],
    }


def heading(hits: Hits) -> str:
    """Return the line above the table of hits: the query, and how much of the index it was compared with."""
    report = hits.report
    return f"query {hits.query}: compared with {report.comparisons:,} of {report.corpus:,} ({report.method})"


def as_table(hits: Hits) -> Table:
    """Return the hits of one query as a table, with window and metadata if there are any."""
    table = Table()
    windowed = any(hit.window is not None for hit in hits)
    grouped = any(hit.group is not None for hit in hits)
    names = list(dict.fromkeys(name for hit in hits for name in hit.metadata))[:4]
    table.add_column("rank", justify="right", no_wrap=True)
    table.add_column("score", justify="right", no_wrap=True)
    # Ids are shown whole, since they are what one goes on with; the other columns share the rest of the line.
    table.add_column("id", no_wrap=True)
    for name in (*(["events", "times"] if windowed else []), *(["group"] if grouped else []), *names):
        table.add_column(escape(name))
    for hit in hits:
        cells = [str(hit.rank), f"{hit.score:.4f}", hit.id]
        if windowed:
            cells += [f"{hit.offset} to {hit.stop}", f"{hit.start:.10g} to {hit.end:.10g}"]
        if grouped:
            cells.append(hit.group or "")
        cells += [str(hit.metadata.get(name, "")) for name in names]
        table.add_row(*map(escape, cells))
    return table
