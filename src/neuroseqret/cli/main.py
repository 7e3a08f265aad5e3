"""The command `neuroseqret`: one file per command, gathered here."""

from __future__ import annotations

import typer

import neuroseqret
from neuroseqret.cli import data
from neuroseqret.cli.demo import demo
from neuroseqret.cli.embed import embed
from neuroseqret.cli.evaluate import evaluate
from neuroseqret.cli.fit import fit
from neuroseqret.cli.index import index_app
from neuroseqret.cli.listing import Command
from neuroseqret.cli.prepare import prepare
from neuroseqret.cli.running import run_app
from neuroseqret.cli.search import search

app = typer.Typer(
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Search for continuous-time event sequences: train a model, index a corpus, find what is relevant.",
)


app.command(cls=Command)(fit)
app.command(cls=Command)(embed)
app.add_typer(index_app, name="index")
app.command(cls=Command)(search)
app.command(cls=Command)(evaluate)
data.app.command(cls=Command)(prepare)
app.add_typer(data.app, name="data")
app.command(cls=Command)(demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neuroseqret {neuroseqret.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run() -> None:
    """Entry point of the command."""
    run_app(app)
