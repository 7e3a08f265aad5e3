"""Options of the commands that read a file of event sequences, and reading with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import remarks
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.cli.places import TrainingColumns
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.models.card import ModelCard

_COLUMNS = (
    "What a column of the file holds: id, time, mark, group, start or end. For example --column id=USER --column "
    "time=WHEN --column mark=ACTION --column group=KIND; '--column mark=' if events have no marks."
)
COLUMNS = typer.Option([], "--column", metavar="NAME=COLUMN", help=_COLUMNS)
COLUMNS_AS_IN_TRAINING = typer.Option(
    [],
    "--column",
    metavar="NAME=COLUMN",
    help=f"{_COLUMNS} By default as told to 'data prepare' for the training data.",
)
FORMAT = typer.Option(
    None,
    "--format",
    metavar="NAME",
    help="Format of the file: {formats}. By default it is recognised from the content.",
)
REPAIR = typer.Option(
    None,
    "--repair",
    metavar="NAMES",
    help="Repair the data first. One or more of sort, drop, clip, deduplicate (sequences with the same id) and "
    "deduplicate-events, separated by commas.",
)
PICKLE = typer.Option(
    False, "--allow-pickle", help="Allow reading pickle files. Only containers and numbers are loaded from them."
)
TIME_FORMAT = typer.Option(
    None,
    "--time-format",
    metavar="FORMAT",
    help="How dates are written if not as 2024-03-01T09:14:07, for example '%d.%m.%Y %H:%M' or '%m/%d/%Y %I:%M %p'.",
)
UNKNOWN_MARKS = typer.Option(
    "error",
    "--unknown-marks",
    metavar="CHOICE",
    help="What to do with marks that the model never met: 'error', 'drop' the events, or 'keep' them as one mark.",
)
FORCE = typer.Option(False, "--force", help="Replace what --out holds, even if another command made it.")
STRICT = typer.Option(
    False, "--strict", help="Stop if the times look like another unit than the model's, instead of warning."
)
#: Appended to the help of files in commands with `--column`.
IN_ANY_FORMAT = "in any known format"
#: Appended to the help of files in commands without the options above.
ANY_FORMAT = (
    "in any known format. If it needs --column, --repair or --allow-pickle, convert it first with "
    "'neuroseqret data convert'"
)


def read_repaired(
    source: Path,
    repair: str | None,
    format: str | None,
    column: list[str],
    time_unit: str | None,
    allow_pickle: bool,
    time_format: str | None = None,
) -> EventSequences:
    """Read a file, repair it as `--repair` says, and validate it."""
    from neuroseqret.data.repair import repair as apply_repairs
    from neuroseqret.readers import read

    sequences = read(
        source,
        format=format,
        columns=column_map(column),
        allow_pickle=allow_pickle,
        time_unit=time_unit,
        time_format=time_format,
        validate=not repair,
    )
    if repair:
        sequences, report = apply_repairs(sequences, [name.strip() for name in repair.split(",")])
        remarks.print(f"repaired: {report}", markup=False)
        sequences.validate(source)
    return sequences


def file_options(column: list[str], time_format: str | None) -> dict[str, Any]:
    """Return the options of `read` that these options of the command line stand for."""
    return {"columns": column_map(column), "time_format": time_format}


def file_options_as_in_training(
    file: Path, column: list[str], time_format: str | None, card: ModelCard | TrainingColumns | None
) -> dict[str, Any]:
    """Return the options of `read`: what `data prepare` was told, if the file has such columns, and what is said here.

    A remark names columns that are not said here. Files of other kinds than one row per event are read as they are.
    """
    given = file_options(column, time_format)
    if card is None or (card.columns is None and card.time_format is None):
        return given
    from neuroseqret.readers import columns_of_long_table
    from neuroseqret.readers.formats.canonical import is_data_folder
    from neuroseqret.readers.options import columns_in

    there = [] if is_data_folder(file) else columns_of_long_table(file)
    said: dict[str, str | None] = given["columns"] or {}
    columns = columns_in(there, card.columns or {}, said) if there else None
    if columns is None:
        return given
    used = {role: name for role, name in columns.items() if role not in said}
    if used or not said:
        words = " ".join(f"--column {role}={name or ''}" for role, name in used.items())
        remarks.print(f"{file}: columns as in 'data prepare' of the training data: {words}", markup=False)
    written = time_format or (None if "time" in said else card.time_format)
    return {"columns": columns or None, "time_format": written}


def column_map(columns: list[str]) -> dict[str, str | None] | None:
    """Return the column map given by NAME=COLUMN words; NAME= means that there is no such column."""
    named: dict[str, str | None] = {}
    for word in columns:
        name, equals, column = word.partition("=")
        if not (name and equals):
            raise UserError(f"--column {word}: write it as NAME=COLUMN, for example time=timestamp")
        named[name] = column or None
    return named or None
