"""`neuroseqret evaluate`: compare methods on the queries of a data folder."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from neuroseqret.cli.console import out, print_json, print_table, progress, remarks
from neuroseqret.cli.numbers import finite, seed_number
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.evaluation.protocol import Condition, Protocol
    from neuroseqret.evaluation.report import Report, Test
    from neuroseqret.evaluation.runner import Result


def evaluate(
    data: Path = typer.Argument(
        ..., metavar="DATA", help="Data folder with corpus.parquet, queries.parquet and optionally qrels.txt."
    ),
    method: list[str] = typer.Option(
        [],
        "--method",
        metavar="METHOD",
        help="A model folder, or the name of a method, which is then trained first: {methods}. Repeat the option to "
        "compare several.",
    ),
    protocol: str = typer.Option(
        "full",
        "--protocol",
        metavar="NAME",
        help="full: rank the whole corpus. sampled: rank all relevant and 1000 other sequences, as in the paper.",
    ),
    corpus: str = typer.Option(
        "seen",
        "--corpus",
        metavar="NAME",
        help="seen: train with the whole corpus. unseen: train with one half of the corpus and rank the other half.",
    ),
    split: str = typer.Option(
        "test", "--split", metavar="NAME", help="Queries to evaluate on: test, validation or train."
    ),
    seed: int = typer.Option(
        0,
        "--seed",
        metavar="N",
        callback=seed_number,
        help="Random seed for training, sampling and significance tests.",
    ),
    max_seconds: float | None = typer.Option(
        None,
        "--max-seconds",
        metavar="SECONDS",
        min=0.001,
        callback=finite,
        help="Train each method for at most this long.",
    ),
    max_queries: int | None = typer.Option(
        None, "--max-queries", metavar="N", min=1, help="Use this many random queries, the same for every method."
    ),
    test: str = typer.Option(
        "randomisation", "--test", metavar="NAME", help="Significance test: randomisation or fisher-exact."
    ),
    json_file: Path | None = typer.Option(
        None,
        "--json",
        metavar="FILE",
        help="Write the results to this file as JSON; with - print them instead of the table.",
    ),
    run_folder: Path | None = typer.Option(
        None,
        "--run",
        metavar="DIR",
        help="Write the measures of every query (Parquet) and the rankings (TREC runs) to this folder.",
    ),
    report_folder: Path | None = typer.Option(
        None,
        "--report",
        metavar="DIR",
        help="Write the tables and a plot of every query to this folder as a page; open its index.html in a browser.",
    ),
    cache: bool = typer.Option(True, help="Reuse results of earlier runs."),
    ray: str | None = typer.Option(
        None,
        "--ray",
        metavar="ADDRESS",
        help="Score on this Ray cluster, for example host:6379, or auto for the one of this machine. Methods are "
        "trained on this machine.",
    ),
    strict: bool = typer.Option(
        False, "--strict", help="A model fails if the times look like another unit than its own, instead of warning."
    ),
) -> None:
    """Compare methods on the queries of a data folder.

    Prints AP, nDCG@10, nDCG@20, RR and AP@10/hits of every method, always including 'random' and 'histogram'. If a
    method fails, its row says so, the reason is printed below the table, and the exit code is 1.
    With --ray an interrupted run continues where it stopped.
    """
    from neuroseqret.evaluation import evaluate as evaluating
    from neuroseqret.evaluation.report import HOLDS
    from neuroseqret.evaluation.report_page import PAGE_HOLDS, write_page
    from neuroseqret.storage.files import check_replaceable, new_file

    if run_folder is not None:
        check_replaceable(run_folder, *HOLDS)  # before the work, not after it
    if report_folder is not None:
        check_replaceable(report_folder, *PAGE_HOLDS)
    if json_file is not None and json_file.is_dir():
        raise UserError(f"{json_file}: is a folder; give the name of a file to --json")
    with ExitStack() as connected:
        elsewhere = {}
        if ray is not None:
            from neuroseqret.distributed import Cluster, RemoteAnswers

            elsewhere["answering"] = RemoteAnswers(connected.enter_context(Cluster(ray)))
        report = evaluating.evaluate(
            data,
            method,
            protocol=cast("Protocol", protocol),
            corpus=cast("Condition", corpus),
            split=split,
            seed=seed,
            max_seconds=max_seconds,
            max_queries=max_queries,
            test=cast("Test", test),
            cache=cache,
            strict=strict,
            progress=progress,
            remark=lambda line: remarks.print(line, markup=False),
            **elsewhere,
        )
    printed = json_file is not None and str(json_file) == "-"
    if printed:
        print_json(report.to_json())
    else:
        print_table(table(report))
    for line in () if printed else notes(report):
        out.print(line, markup=False)
    if json_file is not None and not printed:
        with new_file(json_file) as path:
            path.write_text(json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if run_folder is not None:
        report.save(run_folder)
    if report_folder is not None:
        out.print(f"Open {write_page(report, report_folder)} in a browser.", markup=False)
    if any(result.error is not None for result in report.results):
        raise typer.Exit(1)


def table(report: Report) -> Table:
    """Return a table with one row per method: best value bold, second best underlined, signs of significance."""
    from neuroseqret.measures.table import MEASURES

    task = report.task
    ranked = "whole corpus" if task.protocol == "full" else "sampled lists"
    asked = f"{len(task.queries):,} {task.split} queries"
    title = f"{report.data}: {asked}, {ranked}, corpus {task.condition}, seed {task.seed}"
    # Without lines between columns, names of 20 letters fit into 80 columns.
    made = Table(title=escape(title), title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    made.add_column("method", overflow="fold")
    for measure in MEASURES:
        made.add_column(measure, justify="right", no_wrap=True)
    made.add_column("seconds", justify="right", no_wrap=True)
    order = {measure: report.order(measure) for measure in MEASURES}
    for result in report.results:
        if result.error is not None:
            cells = [Text("failed", "red")] + [Text("")] * (len(MEASURES) - 1)
        else:
            cells = [_cell(report, order[measure], result, measure) for measure in MEASURES]
        made.add_row(Text(result.name), *cells, f"{result.seconds:.1f}{'*' if result.cached else ' '}")
    return made


def _cell(report: Report, order: list[str], result: Result, measure: str) -> Text:
    style = {0: "bold", 1: "underline"}.get(order.index(result.name), "")
    return Text.assemble((f"{100 * result.mean(measure):.1f}", style), report.marks(result.name, measure).ljust(2))


def notes(report: Report) -> list[str]:
    """Return the notes below the table: how to read it, what was left out, why a method failed."""
    task = report.task
    lines = [f"Means in percent; the best is bold, the second best underlined. {report.signs}"]
    if task.left_out:
        lines.append(
            f"{task.left_out} {task.split} queries have nothing relevant in the ranked corpus and were left out."
        )
    if task.not_drawn:
        lines.append(f"{task.not_drawn} more {task.split} queries were not drawn (--max-queries).")
    if any(result.cached for result in report.results):
        lines.append("* computed before; use --no-cache to compute it again.")
    lines += [f"{result.name} failed: {result.error}" for result in report.results if result.error is not None]
    return lines
