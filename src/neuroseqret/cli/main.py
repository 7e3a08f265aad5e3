"""The command `neuroseqret`: one file a command, gathered here.

A user's mistake prints one line on standard error and exits with code 2; a traceback is a bug of ours.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

import typer

import neuroseqret
from neuroseqret.cli import data
from neuroseqret.cli.console import remarks
from neuroseqret.cli.demo import demo
from neuroseqret.cli.embed import embed
from neuroseqret.cli.evaluate import evaluate
from neuroseqret.cli.experiment import experiment
from neuroseqret.cli.fit import fit
from neuroseqret.cli.index import index_app
from neuroseqret.cli.listing import Command
from neuroseqret.cli.prepare import prepare
from neuroseqret.cli.search import search
from neuroseqret.errors import UserError

# Typer carries its own copy of click from 0.26 on and uses the installed one before: this is the base class of
# usage errors in both.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]

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
app.command(cls=Command)(experiment)
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
    """Entry point: turns user errors into one line and exit code 2, and warnings into one line each."""
    warnings.showwarning = lambda message, *_, **__: remarks.print(f"neuroseqret: note: {message}", markup=False)
    try:
        # Without standalone mode `typer.Exit` comes back as a return value.
        sys.exit(app(standalone_mode=False))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _stop("interrupted", 130)
    except UsageError as error:  # an unknown option, a missing argument
        _stop(error.format_message().rstrip(".") + "; see --help", 2)  # type: ignore[attr-defined]
    except UserError as error:
        _stop(str(error), 2)
    except BrokenPipeError:  # `neuroseqret ... | head`: nobody reads on, which is fine
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.filename is not None:
            _stop(f"{error.filename}: {error.strerror}", 2)
        with suppress(OSError):  # what is left to print would fail again when the interpreter ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _stop(error.strerror or str(error), 2)


def _stop(line: str, code: int) -> None:
    remarks.print(f"neuroseqret: {' '.join(line.split())}", markup=False)
    sys.exit(code)
