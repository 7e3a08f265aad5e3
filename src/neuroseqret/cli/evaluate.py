"""`neuroseqret evaluate`: methods side by side on the queries of a data folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Optional, cast

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from neuroseqret.cli.console import out, progress, remarks
from neuroseqret.errors import DataError


def evaluate(
    data: Annotated[Path, typer.Argument(help="Data folder: corpus.parquet, queries.parquet, optional qrels.txt.")],
    method: Annotated[
        Optional[list[str]],  # noqa: UP045  # typer reads the annotation at run time, also on Python 3.10
        typer.Option(help="Name of a method (fitted here) or a model folder (loaded); may be repeated."),
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="full: rank the whole corpus; sampled: all relevant and 1000 others, as in the paper.")
    ] = "full",
    corpus: Annotated[
        str, typer.Option(help="seen: train with the whole corpus; unseen: train with one half, rank the other.")
    ] = "seen",
    split: Annotated[str, typer.Option(help="Which queries are answered: test, validation or train.")] = "test",
    seed: Annotated[int, typer.Option(help="Of fitting, sampled lists, drawn queries and tests.")] = 0,
    max_seconds: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(min=0.001, help="Longest time to fit each method for."),
    ] = None,
    max_queries: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Draw so many queries, the same for every method."),
    ] = None,
    test: Annotated[
        str, typer.Option(help="Significance test over queries: randomisation or fisher-exact.")
    ] = "randomisation",
    json_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--json", help="Write the figures to this file."),
    ] = None,
    run_folder: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--run", help="Write per-query measures (Parquet) and rankings (TREC runs) to this folder."),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Reuse results that were computed before.")] = True,
) -> None:
    """Compare methods: AP, nDCG, RR over the queries of a split, with random and histogram always beside them."""
    from neuroseqret import methods
    from neuroseqret.evaluation.cache import ResultCache
    from neuroseqret.evaluation.protocol import Condition, Protocol, make_task
    from neuroseqret.evaluation.report import Report, Test
    from neuroseqret.evaluation.runner import run
    from neuroseqret.readers import read_folder
    from neuroseqret.readers.files import new_file

    folder = read_folder(data)
    if folder.queries is None or folder.relevance is None:
        missing = "queries" if folder.queries is None else "groups or qrels"
        raise DataError(f"has no {missing} to evaluate with", file=data, remedy=f"add {missing}")
    task = make_task(
        folder.queries,
        folder.corpus,
        None if folder.queries.column("split") is None and folder.relevance.labels is not None else folder.relevance,
        protocol=cast(Protocol, protocol),
        condition=cast(Condition, corpus),
        split=split,
        seed=seed,
        max_queries=max_queries,
    )
    report = Report(folder.name, task, [], cast(Test, test))  # a wrong test is found before hours of work
    results = run(
        task,
        method or [],
        methods,
        max_seconds=max_seconds,
        cache=ResultCache() if cache else None,
        progress=progress,
        remark=lambda line: remarks.print(line, markup=False),
    )
    report = Report(folder.name, task, results, cast(Test, test))
    out.print(table(report))
    for line in notes(report):
        out.print(line, markup=False)
    if json_file is not None:
        with new_file(json_file) as path:
            path.write_text(json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if run_folder is not None:
        report.save(run_folder)
    if any(result.error for result in results):
        raise typer.Exit(1)
