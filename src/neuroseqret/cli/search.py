"""`neuroseqret search`: find the sequences of an index that are relevant to queries, and print them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import file_name_of, progress, remarks
from neuroseqret.cli.event_files import (
    COLUMNS_AS_IN_TRAINING,
    IN_ANY_FORMAT,
    STRICT,
    TIME_FORMAT,
    UNKNOWN_MARKS,
    file_options_as_in_training,
)
from neuroseqret.cli.hits_output import FORMATS, print_hits
from neuroseqret.cli.places import DEVICE, meaning_of, move_model, open_index, training_columns_of
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.index import Hits, Index
    from neuroseqret.models.base import RelevanceModel
    from neuroseqret.serving.client import RemoteIndex


def search(
    folder: Path = typer.Argument(
        ..., metavar="INDEX", help="Index folder, s3://bucket/path, or a server (http://...)."
    ),
    sequences: Path | None = typer.Argument(
        None, metavar="SEQUENCES", help=f"File of query sequences {IN_ANY_FORMAT}. Leave it out with --id."
    ),
    k: int = typer.Option(10, "-k", metavar="N", min=1, help="Number of hits per query."),
    query: list[str] = typer.Option(
        [], "--query", metavar="ID", help="Search only with this query of the file. Repeat the option for several."
    ),
    ids: list[str] = typer.Option(
        [],
        "--id",
        metavar="ID",
        help="Search with this sequence of the index, which is left out of the hits. Repeat the option for several.",
    ),
    limit: int | None = typer.Option(
        None, "--limit", metavar="N", min=1, help="Search only with the first N queries of the file."
    ),
    rerank: Path | None = typer.Option(
        None, "--rerank", metavar="MODEL", help="Model folder; this model puts the best hits into a new order."
    ),
    rerank_top: int | None = typer.Option(
        None, "--rerank-top", metavar="N", min=1, help="Number of hits to rerank. Default: 100, or k if k is larger."
    ),
    form: str = typer.Option(
        "table", "--format", metavar="NAME", help=f"Output format: {', '.join(FORMATS[:-1])} or {FORMATS[-1]}."
    ),
    as_json: bool = typer.Option(False, "--json", help="The same as --format json."),
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
    explain_most: int = typer.Option(
        10, "--explain-most", metavar="N", min=1, help="Number of queries to explain at most."
    ),
    column: list[str] = COLUMNS_AS_IN_TRAINING,
    time_format: str | None = TIME_FORMAT,
    unknown_marks: str = UNKNOWN_MARKS,
    strict: bool = STRICT,
    device: str | None = DEVICE,
) -> None:
    """Search an index with query sequences.

    The queries come from a file, or are sequences of the index itself (--id).
    """
    from neuroseqret.index import Index

    form = "json" if as_json else form
    if form not in FORMATS:
        raise UserError(f"no format is called {form!r}; choose one of {', '.join(FORMATS)}")
    if (sequences is None) == (not ids):
        raise UserError("name either a file of query sequences, or sequences of the index with --id")
    if sequences is None and (query or limit is not None or column or time_format):
        raise UserError("--query, --limit, --column and --time-format are about a file; leave them out with --id")
    index = open_index(folder)
    move_model(index, device)
    reranker: RelevanceModel | Path | None = rerank
    explained: RelevanceModel | None = None
    if explain is not None and isinstance(index, Index):
        reranker, explained = _explained(index, rerank)  # report the error before the search, not after it
    options: dict[str, Any] = {
        "k": k,
        # A server has its own models, by name.
        "rerank": reranker if isinstance(index, Index) else False if rerank is None else str(rerank),
        "rerank_top": rerank_top,
        "where": where,
        "exhaustive": exhaustive,
        "expand": expand,
    }
    if sequences is None:
        asked = index.view().whole(ids) if isinstance(index, Index) else index.get(ids)
        found = index.search(id=ids, **options)
    else:
        options_of_file = file_options_as_in_training(sequences, column, time_format, training_columns_of(index))
        asked = _queries(index, sequences, query, limit, options_of_file, unknown_marks)
        # Unknown marks are decided already, where the file is known.
        found = index.search(asked, **options, unknown_marks="keep", strict=strict)
    groups: list[str | None] = [None] * len(asked) if asked.groups is None else asked.groups.to_pylist()
    print_hits(found, groups, form, where=where, time_unit=meaning_of(index).time_unit)
    if explain is not None:
        _explain(index, explained, rerank, asked, found, explain, explain_most)
        if rerank is not None and isinstance(index, Index) and explained is not reranker:
            remarks.print(f"the pictures explain the score of the index's model, not that of {rerank}", markup=False)


def _queries(
    index: Index | RemoteIndex,
    file: Path,
    chosen: list[str],
    limit: int | None,
    options: dict[str, Any],
    unknown_marks: str,
) -> EventSequences:
    """Read the queries, choose those that were asked for, and number their marks as the index does."""
    from neuroseqret.data.meaning import unknown_marks_choice
    from neuroseqret.readers import read

    choice = unknown_marks_choice(unknown_marks)
    queries = read(file, **options)
    if chosen:
        row_of = {name: row for row, name in enumerate(queries.ids.to_pylist())}
        if missing := [name for name in chosen if name not in row_of]:
            few = ", ".join(list(row_of)[:5]) + (", ..." if len(row_of) > 5 else "")
            raise UserError(f"{file}: holds no sequence {missing[0]!r}; its ids are {few}")
        queries = queries[[row_of[name] for name in chosen]]
    return meaning_of(index).apply(queries[:limit], choice, file)


def _explained(index: Index, rerank: Path | None) -> tuple[RelevanceModel | None, RelevanceModel]:
    """Return the reranking model, if any, and the one whose scores are explained: that one if they can be split."""
    from neuroseqret.explanation import explainable, explained_by
    from neuroseqret.methods import load

    reranker = None if rerank is None else load(rerank)
    model = explained_by(index.model, reranker)
    explainable(model)
    return reranker, model


def _explain(
    index: Index | RemoteIndex,
    model: RelevanceModel | None,
    rerank: Path | None,
    asked: EventSequences,
    found: list[Hits],
    folder: Path,
    most: int,
) -> None:
    """Write one PNG per query that has a hit, named `ROW-QUERY.png`; print a note if a hit cannot be explained."""
    from neuroseqret.explanation import explain, picture
    from neuroseqret.index import Index

    folder.mkdir(parents=True, exist_ok=True)
    answered = [row for row, hits in enumerate(found) if hits]
    chosen = answered[:most]
    best = index.get([found[row][0].window or found[row][0].id for row in chosen])
    written = 0
    for at, row in progress(enumerate(chosen), "explaining", len(chosen)):
        name = file_name_of(found[row].query)
        try:
            if isinstance(index, Index):
                why = explain(index.model if model is None else model, asked[row], best[at])
            else:
                why = index.explain(asked[row], found[row][0], rerank=False if rerank is None else str(rerank))
        except UserError as error:
            remarks.print(f"neuroseqret: note: no explanation for query {found[row].query}: {error}", markup=False)
            continue
        picture(why, folder / f"{row}-{name}.png")
        written += 1
    rest = (
        "" if len(chosen) == len(answered) else f" of {len(answered):,}; choose others with --query or --explain-most"
    )
    remarks.print(f"explanations written to {folder}: {written:,}{rest}", markup=False)
