"""Run a command-line program: a user's mistake prints one line and exits with code 2; a traceback is our bug."""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import suppress

import typer

from neuroseqret.cli.console import remarks
from neuroseqret.errors import UserError

# The base class of usage errors: typer carries its own copy of click since 0.26 and used the installed one before.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def run_app(app: typer.Typer) -> None:
    """Run the program and exit; warnings are printed as one line each."""
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
