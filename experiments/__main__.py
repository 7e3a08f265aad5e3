"""`python -m experiments NAME`: the tables and figures of the paper, on any data folders."""

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
from neuroseqret import methods
from neuroseqret.cli.console import out, remarks
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite
from neuroseqret.cli.running import run_app
from neuroseqret.errors import UserError

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
        help="Data folder, or a folder of them; may be given several times. Default: $NEUROSEQRET_DATA.",
    ),
    results: Path = typer.Option(
        Path("results"), "--out", metavar="DIR", help="Folder for the cells, and for a single figure."
    ),
    document: Path = typer.Option(
        Path("docs/results.md"),
        "--document",
        metavar="FILE",
        help="What 'all' writes; its figures go to the folder 'figures' beside it.",
    ),
    method: list[str] = typer.Option(
        [], "--method", metavar="METHOD", help="Only these: {methods}; may be given several times."
    ),
    seeds: int = typer.Option(3, "--seeds", metavar="N", min=1, help="Seeds of what is trained."),
    max_seconds: float = typer.Option(
        120.0,
        "--max-seconds",
        metavar="SECONDS",
        min=1,
        callback=finite,
        help="Longest time to fit a method for; a second stage gets half as much more.",
    ),
    max_queries: int = typer.Option(
        500, "--max-queries", metavar="N", min=1, help="Draw so many queries, the same for all."
    ),
    keep_stale: bool = typer.Option(False, "--keep-stale", help="Do not measure again what older code measured."),
    measure: bool = typer.Option(True, help="Measure what is missing; else make tables and figures of what is there."),
) -> None:
    """Make a table or figure of the paper.

    It is made out of cells: small measurements, kept as they finish. A run that is cut off goes on where it was, and
    several may share the work. What was measured with the same configuration and the same code is not measured again.
    'all' writes the document; any other name prints its part of it and draws its figure.
    """
    if name != "all" and name not in EXPERIMENTS:
        raise UserError(f"no experiment is called {name!r}; there are {', '.join(EXPERIMENTS)}, all")
    for one in method:
        methods.method_class(one)  # an unknown one is an error now, not an empty table later
    if name == "all" and document.is_dir():
        raise UserError(f"{document}: is a folder; name the file to write by --document")
    cells = ResultCells(results / "cells", keep_stale)
    figures = (document.parent if name == "all" else results) / "figures"
    if measure:
        torch.set_num_threads(1)  # budgets and times are of one core; processes that share the work use the others
        given = data or [Path(place) for place in filter(None, [os.environ.get("NEUROSEQRET_DATA")])]
        if not given:
            raise UserError("no data to experiment with; name data folders by --data or by NEUROSEQRET_DATA")
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
        why = "the methods named have no part in this experiment" if measure else "run it without --no-measure"
        raise UserError(f"{cells.folder}: holds no cells; {why}")
    if name == "all":
        results_document.write(measured, document, figures)
        out.print(f"{document}: made from {len(measured.configs)} cells", markup=False)
    else:
        # A table that is wrapped at the terminal's width is no Markdown any more.
        out.print(EXPERIMENTS[name].report(measured, figures), markup=False, soft_wrap=True)


def run() -> None:
    """Entry point."""
    run_app(app)


if __name__ == "__main__":
    run()
