"""`neuroseqret index create|add|remove|info`: make a corpus searchable and keep it so."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import out, progress, remarks
from neuroseqret.cli.data import ANY_FORMAT
from neuroseqret.cli.listing import Command
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.index import Index

index_app = typer.Typer(no_args_is_help=True, help="Make a corpus searchable: create, add, remove, info.")

INDEX = typer.Argument(..., metavar="INDEX", help="Index folder.")
CORPUS = typer.Argument(
    ..., metavar="CORPUS", help=f"Data folder (its corpus is taken), or a file of event sequences, {ANY_FORMAT}."
)
_BATCH = 8192


@index_app.command(cls=Command)
def create(
    model: Path = typer.Argument(..., metavar="MODEL", help="Model folder, as 'fit' writes it."),
    corpus: Path = CORPUS,
    target: Path = typer.Option(..., "--out", metavar="INDEX", help="Index folder to make."),
    candidates: str = typer.Option(
        "auto",
        "--candidates",
        metavar="NAME",
        help="How a search finds candidates: auto, exhaustive, cells, buckets, hamming.",
    ),
    hash_name: str = typer.Option(
        "network", "--hash", metavar="NAME", help="Hash of buckets and hamming: network, rotation, hyperplanes."
    ),
    window: int | None = typer.Option(
        None, "--window", metavar="N", min=1, help="Index windows of so many events, to find parts."
    ),
    step: int | None = typer.Option(
        None, "--step", metavar="N", min=1, help="Events from one window's beginning to the next one's."
    ),
) -> None:
    """Index a corpus with a model.

    If it is interrupted, continue with 'neuroseqret index add'.
    """
    from neuroseqret.index import Index
    from neuroseqret.models.model_folder import read_config

    if step is not None and window is None:
        raise UserError("--step needs --window")
    batches = _scan(corpus, read_config(model))
    first = list(islice(batches, 1))  # a bad file is told before anything is made
    made = Index.create(model, target, candidates=candidates, hash=hash_name, window_events=window, window_step=step)
    _add(made, chain(first, batches), corpus, upsert=False)


@index_app.command(cls=Command)
def add(
    folder: Path = INDEX,
    corpus: Path = CORPUS,
    upsert: bool = typer.Option(False, "--upsert", help="Replace sequences whose id is in the index already."),
) -> None:
    """Add sequences to an index.

    Those that are there already are passed over, so an interrupted run is simply run again.
    """
    from neuroseqret.index import Index

    index = Index.open(folder)
    _add(index, _scan(corpus, index.config.model_dump()), corpus, upsert)


@index_app.command(cls=Command)
def remove(
    folder: Path = INDEX,
    ids: list[str] = typer.Argument(None, metavar="ID", help="Ids to remove."),
    file: Path | None = typer.Option(None, "--ids", metavar="FILE", help="Text file with one id a line."),
) -> None:
    """Remove sequences by id."""
    from neuroseqret.index import Index
    from neuroseqret.readers.engines.text import whole_text

    wanted = list(ids or [])
    if file is not None:
        wanted += [line.strip() for line in whole_text(file).split("\n") if line.strip()]
    if not wanted:
        raise UserError("no ids given; name them or give a file with --ids")
    number = Index.open(folder).remove(wanted)
    remarks.print(f"{number:,} of {len(set(wanted)):,} sequences removed from {folder}", markup=False)


@index_app.command(cls=Command)
def info(folder: Path = INDEX, as_json: bool = typer.Option(False, "--json", help="As JSON instead of lines.")) -> None:
    """Tell what an index holds and how it searches."""
    from neuroseqret.index import Index

    found = Index.open(folder).info()
    if as_json:
        typer.echo(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for name, value in found.items():
        if value is not None:
            shown = f"{value:,}" if isinstance(value, int) else ", ".join(value) if isinstance(value, tuple) else value
            out.print(f"{name.replace('_', ' ')}: {shown}", markup=False)


def _scan(corpus: Path, learned: Mapping[str, Any]) -> Iterator[EventSequences]:
    """The corpus in batches, in the terms of the model with this configuration."""
    from neuroseqret.data.meaning import in_terms_of
    from neuroseqret.readers import scan_or_read

    return (in_terms_of(batch, learned, corpus) for batch in scan_or_read(_file(corpus), _BATCH))


def _file(corpus: Path) -> Path:
    from neuroseqret.readers.formats.canonical import is_data_folder

    return corpus / "corpus.parquet" if is_data_folder(corpus) else corpus


def _add(index: Index, batches: Iterator[EventSequences], corpus: Path, upsert: bool) -> None:
    done = index.add(progress(batches, "indexing", _number_of_batches(corpus)), upsert=upsert)
    index.refresh()
    parts = [f"{done.added:,} sequences added"]
    if done.replaced:
        parts.append(f"{done.replaced:,} replaced")
    if done.already_there:
        parts.append(f"{done.already_there:,} were there already")
    remarks.print(f"{', '.join(parts)}; {index.folder} holds {len(index):,}", markup=False)


def _number_of_batches(corpus: Path) -> int | None:
    """For the progress bar, where the file says how many rows it has."""
    import pyarrow.parquet as pq
    from pyarrow import ArrowInvalid

    try:
        return math.ceil(pq.read_metadata(_file(corpus)).num_rows / _BATCH)
    except (ArrowInvalid, OSError):
        return None
