"""The command `neuroseqret`: its sub-commands, put together."""

from __future__ import annotations

import typer

import neuroseqret
from neuroseqret.cli.data_convert import convert
from neuroseqret.cli.data_info import info
from neuroseqret.cli.data_prepare import prepare
from neuroseqret.cli.demo import demo
from neuroseqret.cli.embed import embed
from neuroseqret.cli.evaluate import evaluate
from neuroseqret.cli.fit import fit
from neuroseqret.cli.index import index_app
from neuroseqret.cli.keys import keys_app
from neuroseqret.cli.listing import Command, Commands
from neuroseqret.cli.running import run_app
from neuroseqret.cli.search import search
from neuroseqret.cli.serve import serve

app = typer.Typer(
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="A search engine for continuous-time event sequences: train a model, index a corpus, search the index.",
)
data_app = typer.Typer(no_args_is_help=True, help="Inspect, convert and prepare event data.")

app.command(cls=Command)(fit)
app.command(cls=Command)(embed)
app.add_typer(index_app, name="index")
app.command(cls=Command)(search)
app.command(cls=Command)(evaluate)
for command in (info, convert, prepare):
    data_app.command(cls=Command)(command)
app.add_typer(data_app, name="data")
app.command(cls=Command)(serve)
app.add_typer(keys_app, name="keys")
app.command(cls=Command)(demo)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"neuroseqret {neuroseqret.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def run() -> None:
    """Run the command; the entry point of the installed script."""
    run_app(app)
