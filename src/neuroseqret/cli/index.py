"""`neuroseqret index create|add|remove|compact|info|check`: build an index and change it."""

from __future__ import annotations

from dataclasses import asdict
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli import adding
from neuroseqret.cli.console import out, print_json, remarks
from neuroseqret.cli.embed import RAY
from neuroseqret.cli.event_files import (
    COLUMNS_AS_IN_TRAINING,
    IN_ANY_FORMAT,
    STRICT,
    TIME_FORMAT,
    UNKNOWN_MARKS,
    file_options_as_in_training,
)
from neuroseqret.cli.listing import Command
from neuroseqret.cli.numbers import finite, positive
from neuroseqret.cli.places import (
    DEVICE,
    device_named,
    meaning_of,
    move_model,
    name_of,
    open_folder,
    open_index,
    training_columns_of,
)
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    pass

index_app = typer.Typer(no_args_is_help=True, help="Build and change an index.")

INDEX = typer.Argument(..., metavar="INDEX", help="Index folder, s3://bucket/path, or a server (http://...).")
PLACE = typer.Argument(..., metavar="INDEX", help="Index folder, or s3://bucket/path.")
CORPUS = typer.Argument(
    ..., metavar="CORPUS", help=f"Data folder, whose corpus is indexed, or a file of event sequences {IN_ANY_FORMAT}."
)
JSON = typer.Option(False, "--json", help="Print JSON instead of text.")
_NAMED = 10  # unknown ids that a message lists
#: What `index info` calls entries whose own name says too little.
_SAID = {
    "not_yet_in_structure": "not yet in the search structure",
    "removed_in_structure": "removed, but still in the search structure",
}


@index_app.command(cls=Command)
def create(
    model: Path = typer.Argument(..., metavar="MODEL", help="Model folder, written by 'neuroseqret fit'."),
    corpus: Path = CORPUS,
    target: Path = typer.Option(..., "--out", metavar="INDEX", help="Index folder to write, or s3://bucket/path."),
    candidates: str = typer.Option(
        "auto",
        "--candidates",
        metavar="NAME",
        help="How a search finds candidates: auto, exhaustive, cells, buckets or hamming.",
    ),
    fraction: float = typer.Option(
        0.01, "--fraction", metavar="SHARE", callback=finite, help="Share of the corpus that a search compares."
    ),
    at_least: int = typer.Option(
        2000, "--at-least", metavar="N", min=1, help="Number of sequences that a search compares at least."
    ),
    hash_name: str | None = typer.Option(
        None,
        "--hash",
        metavar="NAME",
        help="Hash function: network, trees, rotation or hyperplanes. By default trees for buckets, else network.",
    ),
    bits: int | None = typer.Option(
        None, "--bits", metavar="N", min=1, help="Bits of a hash code. By default 64; with trees 16 per bucket table."
    ),
    tables: int = typer.Option(10, "--tables", metavar="N", min=1, help="Number of bucket tables."),
    table_bits: int | None = typer.Option(
        None,
        "--table-bits",
        metavar="N",
        min=1,
        help="Bits of a bucket table. By default they follow from corpus size and --fraction.",
    ),
    window: int | None = typer.Option(
        None,
        "--window",
        metavar="N",
        min=1,
        help="Index windows of N events instead of whole sequences, to find parts of sequences.",
    ),
    window_duration: float | None = typer.Option(
        None,
        "--window-duration",
        metavar="TIME",
        callback=positive,
        help="Index windows of this duration, in the data's unit of time, instead of windows of N events.",
    ),
    step: float | None = typer.Option(
        None,
        "--step",
        metavar="STEP",
        callback=positive,
        help="From the start of one window to the start of the next: a number of events, or a duration. By default "
        "windows do not overlap.",
    ),
    column: list[str] = COLUMNS_AS_IN_TRAINING,
    time_format: str | None = TIME_FORMAT,
    engine: str | None = typer.Option(
        None,
        "--engine",
        metavar="URL",
        help="Server that finds the candidates, for example milvus://host:19530/collection. The collection is made.",
    ),
    unknown_marks: str = UNKNOWN_MARKS,
    strict: bool = STRICT,
    device: str | None = DEVICE,
    as_json: bool = JSON,
) -> None:
    """Create an index of a corpus.

    If this is interrupted, go on with 'neuroseqret index add'.
    """
    from neuroseqret.data.gaps import check_gaps
    from neuroseqret.index import Index
    from neuroseqret.models.model_folder import read_card

    if step is not None and window is None and window_duration is None:
        raise UserError("--step needs --window or --window-duration; add one of them or leave out --step")
    if device is not None:
        device_named(device)  # report the error before anything is written
    card = read_card(model)
    options = file_options_as_in_training(corpus, column, time_format, card)
    batches = adding.scan(corpus, card.meaning, options, unknown_marks)
    first = list(islice(batches, 1))  # report a bad file before anything is written
    if first and strict:
        check_gaps(first[0], card.typical_gaps, card.time_unit, strict=True, file=corpus)
    settings: dict[str, Any] = {"candidates": candidates, "fraction": fraction, "at_least": at_least}
    settings |= {"hash": hash_name, "bits": bits, "tables": tables, "table_bits": table_bits}
    settings |= {"window_events": window, "window_duration": window_duration, "window_step": step}
    made = Index.create(model, target, engine=engine, **settings)
    move_model(made, device)
    adding.add(made, chain(first, batches), corpus, upsert=False, as_json=as_json, strict=strict)


@index_app.command(cls=Command)
def add(
    folder: Path = INDEX,
    corpus: Path = CORPUS,
    upsert: bool = typer.Option(False, "--upsert", help="Replace sequences whose id is already in the index."),
    column: list[str] = COLUMNS_AS_IN_TRAINING,
    time_format: str | None = TIME_FORMAT,
    unknown_marks: str = UNKNOWN_MARKS,
    ray: str | None = RAY,
    strict: bool = STRICT,
    device: str | None = DEVICE,
    as_json: bool = JSON,
) -> None:
    """Add sequences to an index.

    Sequences that are already in the index are skipped, so after an interruption just run the command again.
    """
    index = open_index(folder)
    if ray is not None and device is not None:
        raise UserError("--device is about this machine; leave it out with --ray")
    move_model(index, device)
    options = file_options_as_in_training(corpus, column, time_format, training_columns_of(index))
    batches = adding.scan(corpus, meaning_of(index), options, unknown_marks)
    if ray is None:
        adding.add(index, batches, corpus, upsert, as_json, strict=strict)
        return
    from neuroseqret.distributed import Cluster, RemoteEmbedder
    from neuroseqret.index import Index

    if not isinstance(index, Index):
        raise UserError("--ray adds to an index folder; a server embeds what it is sent itself")
    with Cluster(ray) as cluster:
        embedder = RemoteEmbedder(cluster, index.folder / "model", index.model)
        remote: dict[str, Any] = {"embedder": embedder, "at_once": 2 * cluster.slots}
        adding.add(index, batches, corpus, upsert, as_json, **remote, strict=strict)


@index_app.command(cls=Command)
def remove(
    folder: Path = INDEX,
    ids: list[str] = typer.Argument(None, metavar="ID", help="Ids of the sequences to remove."),
    file: Path | None = typer.Option(None, "--ids", metavar="FILE", help="Text file with one id per line."),
    as_json: bool = JSON,
) -> None:
    """Remove sequences from an index.

    Ids that are not in the index are named, and the exit code is then 1.
    """
    from neuroseqret.readers.engines.text import whole_text

    wanted = list(ids or [])
    if file is not None:
        wanted += [line.strip() for line in whole_text(file).split("\n") if line.strip()]
    if not wanted:
        raise UserError("no ids given; name the ids, or a file of ids with --ids")
    index = open_index(folder)
    unknown = index.unknown(wanted)
    number = index.remove(wanted)
    if as_json:
        print_json({"removed": number, "unknown": unknown, **adding.size_of(index)})
    else:
        remarks.print(f"{adding.counted(number, 'sequence')} removed; {adding.holds(index)}", markup=False)
    if unknown:
        if not as_json:
            few = ", ".join(unknown[:_NAMED]) + (", ..." if len(unknown) > _NAMED else "")
            missing = adding.counted(len(unknown), "id")
            remarks.print(f"neuroseqret: {missing} not in {name_of(index)}: {few}", markup=False)
        raise typer.Exit(1)


@index_app.command(cls=Command)
def compact(folder: Path = PLACE, as_json: bool = JSON) -> None:
    """Merge the small files of an index.

    The structure that searches read is built again too. Worth it after many small additions or removals; searching is
    possible meanwhile.
    """
    index = open_folder(folder)
    before = index.info()["bytes_on_disk"]
    index.compact()
    after = index.info()["bytes_on_disk"]
    if as_json:
        print_json({"bytes_before": before, "bytes_after": after, **adding.size_of(index)})
    else:
        remarks.print(
            f"{name_of(index)}: {before:,} bytes before, {after:,} now, with the versions of the last hour, which a "
            f"later 'index compact' deletes; {adding.holds(index)}",
            markup=False,
        )


@index_app.command(cls=Command)
def info(folder: Path = INDEX, as_json: bool = JSON) -> None:
    """Show what an index holds and how it searches."""
    found = open_index(folder).info()
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if value is not None:
            out.print(f"{_SAID.get(name, name.replace('_', ' '))}: {_shown(value)}", markup=False)


def _shown(value: object) -> str:
    """Return an entry of `info` as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_shown(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):  # a server tells the types of columns too
        names = (str(one["name"] if isinstance(one, dict) and "name" in one else one) for one in value)
        return ", ".join(names) or "none"
    return str(value)


@index_app.command(cls=Command)
def check(folder: Path = PLACE, as_json: bool = JSON) -> None:
    """Check that an index is as it was written.

    Reads all sequences and the search structure, compares them with their checksums, and computes some embeddings
    again. Prints one line per flaw and exits with 1 if there is one.
    """
    flaws = open_folder(folder).check()
    if as_json:
        print_json({"flaws": flaws})
    for flaw in () if as_json else flaws:
        out.print(flaw, markup=False)
    if flaws:
        raise typer.Exit(1)
    if not as_json:
        remarks.print(f"{folder}: no flaws found", markup=False)


@index_app.command(cls=Command)
def sync(
    folder: Path = PLACE,
    anew: bool = typer.Option(False, "--anew", help="Empty the engine's collection and fill it again."),
    as_json: bool = JSON,
) -> None:
    """Bring the engine of an index in line with what the index holds.

    Opening an index does this after a crash. Run it after the engine itself was restored, emptied or changed.
    """
    from neuroseqret.index import Index

    index = Index.open(folder)
    done = index.sync(anew)
    if as_json:
        print_json(asdict(done))
        return
    remarks.print(f"{index.info()['engine']}: {done.added:,} added, {done.removed:,} removed", markup=False)
