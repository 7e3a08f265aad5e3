"""`neuroseqret data info` and `data convert`: what is in a file, and the same in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out, remarks
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.sequences import EventSequences
    from neuroseqret.statistics import Statistics

app = typer.Typer(no_args_is_help=True, help="Look at, convert and prepare event data.")

COLUMNS = typer.Option(
    [], "--column", help="Column map of a long table, as id=USER, time=WHEN, mark=ACTION; may be given several times."
)
FORMAT = typer.Option(None, "--format", help="Format of the file; sniffed from its content by default.")
PICKLE = typer.Option(False, "--allow-pickle", help="Read pickled files, containers and numbers only.")


@app.command()
def info(
    file: Path = typer.Argument(..., help="File of event sequences in any known format, or a data folder."),
    format: str | None = FORMAT,
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
) -> None:
    """Tell what is in a file: sizes, lengths, marks by name, gaps, and the flaws found."""
    from neuroseqret.readers import read, sniff
    from neuroseqret.readers.folder import read_folder
    from neuroseqret.statistics import describe

    if file.is_dir():
        folder = read_folder(file, validate=False)
        out.print(f"[bold]{escape(folder.name)}[/]: data folder", soft_wrap=True)
        for part, sequences in (("corpus", folder.corpus), ("queries", folder.queries)):
            if sequences is not None:
                _print(part, sequences, describe(sequences))
        return
    sequences = read(file, format=format, columns=_map(column), allow_pickle=allow_pickle, validate=False)
    _print(f"{file.name} ({format or sniff(file)})", sequences, describe(sequences))


@app.command()
def convert(
    source: Path = typer.Argument(..., metavar="IN", help="File of event sequences in any known format."),
    target: Path = typer.Argument(..., metavar="OUT", help="File to write; untouched if anything is wrong."),
    format: str | None = FORMAT,
    to: str | None = typer.Option(None, "--to", help="Format to write; by the ending of OUT by default."),
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
    repair: str | None = typer.Option(
        None, "--repair", help="Mend the data first: any of sort, drop, clip, deduplicate, separated by commas."
    ),
    time_unit: str | None = typer.Option(None, "--time-unit", help="What one unit of time is, to keep with the data."),
) -> None:
    """Write a file in another format, after validation."""
    from neuroseqret.readers import read, write
    from neuroseqret.validation import repair as mend

    sequences = read(
        source, format=format, columns=_map(column), allow_pickle=allow_pickle, time_unit=time_unit, validate=not repair
    )
    if repair:
        sequences, report = mend(sequences, [action.strip() for action in repair.split(",")])
        remarks.print(f"repaired: {report}", markup=False)
        sequences.validate(source)
    write(sequences, target, to)
    remarks.print(f"{len(sequences):,} sequences written to {target}", markup=False)
