"""`neuroseqret index create|add|remove|info|check`: build an index and change it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuroseqret.cli.console import out, progress, remarks
from neuroseqret.cli.event_files import ANY_FORMAT, UNKNOWN_MARKS
from neuroseqret.cli.listing import Command
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.meaning import Meaning
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.index import Index

index_app = typer.Typer(no_args_is_help=True, help="Build and change an index.")

INDEX = typer.Argument(..., metavar="INDEX", help="Index folder.")
CORPUS = typer.Argument(
    ..., metavar="CORPUS", help=f"Data folder, whose corpus is indexed, or a file of event sequences {ANY_FORMAT}."
)
_BATCH = 8192


@index_app.command(cls=Command)
def create(
    model: Path = typer.Argument(..., metavar="MODEL", help="Model folder, written by 'neuroseqret fit'."),
    corpus: Path = CORPUS,
    target: Path = typer.Option(..., "--out", metavar="INDEX", help="Index folder to write."),
    candidates: str = typer.Option(
        "auto",
        "--candidates",
        metavar="NAME",
        help="How a search finds candidates: auto, exhaustive, cells, buckets or hamming.",
    ),
    hash_name: str = typer.Option(
        "network",
        "--hash",
        metavar="NAME",
        help="Hash function for buckets and hamming: network, rotation or hyperplanes.",
    ),
    window: int | None = typer.Option(
        None,
        "--window",
        metavar="N",
        min=1,
        help="Index windows of N events instead of whole sequences, to find parts of sequences.",
    ),
    step: int | None = typer.Option(
        None,
        "--step",
        metavar="N",
        min=1,
        help="Number of events from the start of one window to the start of the next. Needs --window.",
    ),
    unknown_marks: str = UNKNOWN_MARKS,
) -> None:
    """Create an index of a corpus.

    If this is interrupted, continue with 'neuroseqret index add'.
    """
    from neuroseqret.index import Index
    from neuroseqret.models.model_folder import read_card

    if step is not None and window is None:
        raise UserError("--step needs --window; add it or leave out --step")
    batches = _scan(corpus, read_card(model).meaning, unknown_marks)
    first = list(islice(batches, 1))  # report a bad file before anything is written
    made = Index.create(model, target, candidates=candidates, hash=hash_name, window_events=window, window_step=step)
    _add(made, chain(first, batches), corpus, upsert=False)


@index_app.command(cls=Command)
def add(
    folder: Path = INDEX,
    corpus: Path = CORPUS,
    upsert: bool = typer.Option(False, "--upsert", help="Replace sequences whose id is already in the index."),
    unknown_marks: str = UNKNOWN_MARKS,
) -> None:
    """Add sequences to an index.

    Sequences that are already in the index are skipped, so after an interruption just run the command again.
    """
    from neuroseqret.index import Index

    index = Index.open(folder)
    _add(index, _scan(corpus, index.config.meaning, unknown_marks), corpus, upsert)


@index_app.command(cls=Command)
def remove(
    folder: Path = INDEX,
    ids: list[str] = typer.Argument(None, metavar="ID", help="Ids of the sequences to remove."),
    file: Path | None = typer.Option(None, "--ids", metavar="FILE", help="Text file with one id per line."),
) -> None:
    """Remove sequences from an index."""
    from neuroseqret.index import Index
    from neuroseqret.readers.engines.text import whole_text

    wanted = list(ids or [])
    if file is not None:
        wanted += [line.strip() for line in whole_text(file).split("\n") if line.strip()]
    if not wanted:
        raise UserError("no ids given; name the ids, or a file of ids with --ids")
    number = Index.open(folder).remove(wanted)
    remarks.print(f"{number:,} of {len(set(wanted)):,} sequences removed from {folder}", markup=False)


@index_app.command(cls=Command)
def info(
    folder: Path = INDEX, as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text.")
) -> None:
    """Show what an index holds and how it searches."""
    from neuroseqret.index import Index

    found = Index.open(folder).info()
    if as_json:
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for name, value in found.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else value
            out.print(f"{name.replace('_', ' ')}: {shown}", markup=False)


@index_app.command(cls=Command)
def check(folder: Path = INDEX) -> None:
    """Check that an index is as it was written.

    Reads all sequences and the search structure, compares them with their checksums, and computes some embeddings
    again. Prints one line per flaw and exits with 1 if there is one.
    """
    from neuroseqret.index import Index

    flaws = Index.open(folder).check()
    for flaw in flaws:
        out.print(flaw, markup=False)
    if flaws:
        raise typer.Exit(1)
    remarks.print(f"{folder}: no flaws found", markup=False)


def _scan(corpus: Path, meaning: Meaning, unknown_marks: str) -> Iterator[EventSequences]:
    """Read the corpus in batches, with marks numbered as the model's."""
    from neuroseqret.data.meaning import unknown_marks_choice
    from neuroseqret.readers import scan_or_read

    choice = unknown_marks_choice(unknown_marks)
    return (meaning.apply(batch, choice, corpus) for batch in scan_or_read(_file(corpus), _BATCH))


def _file(corpus: Path) -> Path:
    """Return the file to read: the corpus of a data folder, or the path itself."""
    from neuroseqret.readers.formats.canonical import is_data_folder

    return corpus / "corpus.parquet" if is_data_folder(corpus) else corpus


def _add(index: Index, batches: Iterator[EventSequences], corpus: Path, upsert: bool) -> None:
    shown = progress(batches, "indexing", _number_of_batches(corpus))
    done = index.add(shown, upsert=upsert, unknown_marks="keep")  # decided by `_scan`, where the file is known
    index.refresh()
    parts = [f"{done.added:,} sequences added"]
    if done.replaced:
        parts.append(f"{done.replaced:,} replaced")
    if done.already_there:
        parts.append(f"{done.already_there:,} were already there")
    remarks.print(f"{', '.join(parts)}; {index.folder} now holds {len(index):,}", markup=False)


def _number_of_batches(corpus: Path) -> int | None:
    """Return the number of batches for the progress bar, or None if the file does not state its number of rows."""
    import pyarrow.parquet as pq
    from pyarrow import ArrowInvalid

    try:
        return math.ceil(pq.read_metadata(_file(corpus)).num_rows / _BATCH)
    except (ArrowInvalid, OSError):
        return None
