"""Run a command-line program. A user's mistake prints one line and exits with code 2; a traceback is a bug."""

from __future__ import annotations

import os
import re
import sys
import warnings
from contextlib import suppress

import typer

from neuroseqret.cli.console import remarks
from neuroseqret.errors import UserError, one_line

# The base class of usage errors. Since 0.26 typer has its own copy of click; before, it used the installed one.
UsageError: type[Exception] = typer.BadParameter.__bases__[0]


def run_app(app: typer.Typer) -> None:
    """Run the program and exit; print each warning as one line."""
    warnings.showwarning = lambda message, *_, **__: remarks.print(
        f"neuroseqret: note: {one_line(message)}", markup=False
    )
    try:
        # Without standalone mode `typer.Exit` is returned as a value.
        sys.exit(app(standalone_mode=False))
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _stop("interrupted", 130)
    except UsageError as error:  # an unknown option, a missing argument
        if type(error).__name__ == "NoArgsIsHelpError":  # a group of commands without the command
            remarks.print(error.format_message(), markup=False)  # type: ignore[attr-defined]
            sys.exit(2)
        _stop(error.format_message().rstrip(".") + "; see --help", 2)  # type: ignore[attr-defined]
    except UserError as error:
        _stop(str(error), 2)
    except BrokenPipeError:  # `neuroseqret ... | head`: the reader has stopped, which is no error
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        if error.filename is not None:
            _stop(f"{error.filename}: {error.strerror}", 2)
        with suppress(OSError):  # otherwise flushing would fail again when the interpreter ends
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _stop(error.strerror or str(error), 2)


def _stop(line: str, code: int) -> None:
    line = re.sub(r"repair with '([\w-]+)'$", r"repair with --repair \1 of 'data prepare' or 'data convert'", line)
    remarks.print(f"neuroseqret: {one_line(line)}", markup=False)
    sys.exit(code)
