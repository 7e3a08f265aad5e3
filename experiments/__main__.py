"""`python -m experiments NAME`: make the tables and figures of the paper, on any data folders."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import typer

from experiments import results_document
from experiments.find_data import find_data
from experiments.lab import Lab
from experiments.measured import Measured
from experiments.result_cells import ResultCells
from neuroseqret.cli.console import out, remarks
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite
from neuroseqret.cli.running import run_app
from neuroseqret.errors import UserError
from neuroseqret.methods import registry as methods

EXPERIMENTS = results_document.EXPERIMENTS

app = typer.Typer(
    pretty_exceptions_enable=False, rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command(cls=Command)
def experiment(
    name: str = typer.Argument(..., metavar="NAME", help=f"One of {', '.join(EXPERIMENTS)}, or all."),
    data: list[Path] = typer.Option(
        [],
        "--data",
        metavar="DIR",
        help="Data folder, or a folder of data folders; may be repeated. Default: $NEUROSEQRET_DATA.",
    ),
    results: Path = typer.Option(
        Path("results"), "--out", metavar="DIR", help="Folder for the cells, and for the figure of one experiment."
    ),
    document: Path = typer.Option(
        Path("docs/results.md"),
        "--document",
        metavar="FILE",
        help="The page that 'all' writes; its figures go to the folder 'figures' beside it.",
    ),
    method: list[str] = typer.Option(
        [], "--method", metavar="METHOD", help="Measure only this method: {methods}; may be repeated."
    ),
    seeds: int = typer.Option(3, "--seeds", metavar="N", min=1, help="Number of seeds for methods that are trained."),
    max_seconds: float = typer.Option(
        120.0,
        "--max-seconds",
        metavar="SECONDS",
        min=1,
        callback=finite,
        help="Longest time to fit a method; a second stage gets half as much on top of its first stage.",
    ),
    max_queries: int = typer.Option(
        500, "--max-queries", metavar="N", min=1, help="Number of queries to draw, the same for all methods."
    ),
    keep_stale: bool = typer.Option(
        False, "--keep-stale", help="Keep cells of older versions instead of measuring them again."
    ),
    measure: bool = typer.Option(
        True, help="Measure what is missing, or only make tables and figures from the cells that are there."
    ),
) -> None:
    """Make a table or figure of the paper.

    It is made from cells: small measurements that are kept as they finish. An interrupted run goes on where it stopped,
    and several processes can share the work. What was measured with the same configuration and the same versions is
    not measured again. 'all' writes the page; any other name prints its part of the page and draws its figure.
    """
    if name != "all" and name not in EXPERIMENTS:
        raise UserError(f"no experiment is called {name!r}; there are {', '.join(EXPERIMENTS)}, all")
    for one in method:
        methods.method_class(one)  # raises for an unknown name now; later it would be an empty table
    if name == "all" and document.is_dir():
        raise UserError(f"{document}: is a folder; name the file to write by --document")
    cells = ResultCells(results / "cells", keep_stale)
    figures = (document.parent if name == "all" else results) / "figures"
    if measure:
        torch.set_num_threads(1)  # budgets and times are for one core; use several processes for several cores
        given = data or [Path(place) for place in filter(None, [os.environ.get("NEUROSEQRET_DATA")])]
        if not given:
            raise UserError("there is no data; name data folders by --data or by NEUROSEQRET_DATA")
        lab = Lab(
            folders=find_data(given),
            cells=cells,
            models=results / ".models",
            methods=frozenset(method),
            seeds=seeds,
            max_seconds=max_seconds,
            max_queries=max_queries,
            say=lambda line: remarks.print(line, markup=False),
        )
        for part in EXPERIMENTS.values() if name == "all" else [EXPERIMENTS[name]]:
            part.measure(lab)
    measured = Measured(cells)
    if not measured.configs:
        why = "this experiment has no such methods" if measure else "run it without --no-measure"
        raise UserError(f"{cells.folder}: holds no cells; {why}")
    if name == "all":
        results_document.write(measured, document, figures)
        out.print(f"{document}: made from {len(measured.configs)} cells", markup=False)
    else:
        # A table that is wrapped at the width of the terminal is not Markdown any more.
        out.print(EXPERIMENTS[name].report(measured, figures), markup=False, soft_wrap=True)


def run() -> None:
    """Run the command and exit."""
    run_app(app)


if __name__ == "__main__":
    run()
