"""`neuroseqret data convert`: write a file of sequences in another format."""

from __future__ import annotations

from pathlib import Path

import typer

from neuroseqret.cli.console import print_json, remarks
from neuroseqret.cli.event_files import COLUMNS, FORMAT, PICKLE, REPAIR, TIME_FORMAT, read_repaired


def convert(
    source: Path = typer.Argument(..., metavar="IN", help="File of event sequences in any known format."),
    target: Path = typer.Argument(
        ..., metavar="OUT", help="File to write. It is left untouched if anything goes wrong."
    ),
    format: str | None = FORMAT,
    to: str | None = typer.Option(
        None,
        "--to",
        metavar="NAME",
        help="Format to write, one of those of --format. By default it follows from the ending of OUT.",
    ),
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
    repair: str | None = REPAIR,
    time_format: str | None = TIME_FORMAT,
    time_unit: str | None = typer.Option(
        None, "--time-unit", metavar="UNIT", help="Name of the unit of time, saved with the data. Times do not change."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
) -> None:
    """Write a file in another format.

    The data is validated first.
    """
    from neuroseqret.readers import write

    sequences = read_repaired(source, repair, format, column, time_unit, allow_pickle, time_format)
    write(sequences, target, to)
    if as_json:
        print_json({"file": str(target), "sequences": len(sequences), "events": len(sequences.times)})
        return
    remarks.print(
        f"{len(sequences):,} {'sequence' if len(sequences) == 1 else 'sequences'} written to {target}", markup=False
    )
