"""`neuroseqret data prepare`: make a data folder from the raw files of a known set, or from any file of sequences."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from neuroseqret.cli.console import out as console
from neuroseqret.cli.console import progress, remarks
from neuroseqret.cli.event_files import COLUMNS, FORCE, FORMAT, PICKLE, REPAIR, TIME_FORMAT, column_map, read_repaired
from neuroseqret.cli.numbers import finite, seed_number
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.readers.data_folder import DataFolder

SETS = "audio, sports, celebrity, electricity, health, twitter or amazon"

#: What a file without groups means for the data folder.
WITHOUT_GROUPS = (
    "neuroseqret: note: the file has no groups, so relevance is made from sub-sequences: each sequence is cut into "
    "windows, and the windows of one sequence count as relevant to each other. The model learns to tell sequences "
    "apart, not kinds of sequences, and the figures of 'evaluate' say how well it does that. If a column "
    "says which sequences belong together, name it with --column group=COLUMN."
)


def prepare(
    name: str | None = typer.Argument(None, metavar="NAME", help=f"One of the paper's data sets: {SETS}."),
    raw: Path | None = typer.Argument(
        None, metavar="RAW_DIR", help="Folder with the raw files of that set; docs/datasets.md lists them."
    ),
    out: Path = typer.Option(..., "--out", metavar="DIR", help="Data folder to write."),
    file: Path | None = typer.Option(
        None, "--from", metavar="FILE", help="Prepare this file of sequences instead of NAME and RAW_DIR."
    ),
    relevance: str | None = typer.Option(
        None,
        "--relevance",
        metavar="NAME",
        help="What counts as relevant. groups: sequences of the same group (the default if there are groups); "
        "subsequences: windows of the same sequence that do not overlap (the default for a file without groups); "
        "overlapping: overlapping windows, as in the paper.",
    ),
    variant: str | None = typer.Option(
        None,
        "--variant",
        metavar="NAME",
        help="Another way to turn the raw files into events, for example beats or signal; see docs/datasets.md.",
    ),
    events: int | None = typer.Option(None, "--events", metavar="N", min=1, help="Number of events per window."),
    min_events: int | None = typer.Option(
        None, "--min-events", metavar="N", min=1, help="Leave out sequences with fewer events."
    ),
    marks: int | None = typer.Option(
        None, "--marks", metavar="N", min=2, help="Number of marks that numeric values are divided into."
    ),
    most: int | None = typer.Option(
        None, "--most", metavar="N", min=1, help="Use at most this many windows per group or product."
    ),
    query_share: float | None = typer.Option(
        None,
        "--query-share",
        metavar="SHARE",
        callback=finite,
        help="Share of the sequences that become queries, between 0 and 1.",
    ),
    seed: int = typer.Option(
        0, "--seed", metavar="N", callback=seed_number, help="Random seed for choosing queries and splits."
    ),
    format: str | None = FORMAT,
    column: list[str] = COLUMNS,
    time_format: str | None = TIME_FORMAT,
    time_unit: str | None = typer.Option(
        None, "--time-unit", metavar="UNIT", help="Name of the unit of time, saved with the data. Only with --from."
    ),
    repair: str | None = REPAIR,
    allow_pickle: bool = PICKLE,
    force: bool = FORCE,
    as_json: bool = typer.Option(False, "--json", help="Print the counts of the data folder as JSON."),
) -> None:
    """Make a data folder to train and evaluate on.

    Takes the raw files of one of the paper's data sets (NAME and RAW_DIR) or any file of sequences (--from). The data
    folder holds a corpus, queries that are split into train, validation and test, and which sequences are relevant to
    each query.
    """
    from neuroseqret.datasets import prepare as recipes
    from neuroseqret.readers.data_folder import HOLDS
    from neuroseqret.storage.files import check_replaceable

    if (file is None) == (name is None):
        raise UserError(f"nothing to prepare; give either NAME and RAW_DIR (NAME is {SETS}) or --from FILE")
    check_replaceable(out, *HOLDS)  # before the work, not after it
    asked = {
        "set": name, "file": None if file is None else file.name, "relevance": relevance, "variant": variant,
        "events": events, "min_events": min_events, "marks": marks, "most": most, "query_share": query_share,
        "seed": seed, "format": format, "columns": column_map(column), "time_format": time_format,
        "time_unit": time_unit, "repair": repair,
    }  # fmt: skip
    asked = {option: value for option, value in asked.items() if value is not None}
    if not force:
        _check_same(out, asked)
    if file is not None:
        named = {"variant": variant, "min_events": min_events, "marks": marks, "most": most}
        _only_for("the named sets, not for --from", **named)
        sequences = read_repaired(file, repair, format, column, time_unit, allow_pickle, time_format)
        if relevance is None and sequences.groups is None:
            remarks.print(WITHOUT_GROUPS, markup=False)
        made = recipes.prepare_sequences(
            sequences,
            out,
            relevance=relevance,
            query_share=query_share,
            window_events=events,
            seed=seed,
            meta={"title": f"from {file.name}", "asked": asked},
        )
    else:
        recipes.module(str(name))  # report an unknown name before anything else
        _only_for("--from, not for the named sets", format=format, column=column, time_unit=time_unit, repair=repair)
        _only_for("--from, not for the named sets", time_format=time_format)
        if raw is None:
            raise UserError(f"RAW_DIR is missing; give the folder with the raw files of {name}, see docs/datasets.md")
        given: dict[str, Any] = {"variant": variant, "events": events, "min_events": min_events, "marks": marks}
        given |= {"most": most, "allow_pickle": True if allow_pickle else None}
        options = {key: value for key, value in given.items() if value is not None}
        made = recipes.prepare(
            str(name),
            raw,
            out,
            relevance=relevance or "groups",
            query_share=query_share,
            seed=seed,
            progress=_recordings,
            meta={"asked": asked},
            **options,
        )
    if as_json:
        typer.echo(json.dumps({"folder": str(made.path), **made.meta["counts"]}, indent=1))
        return
    _report(made)


def _check_same(out: Path, asked: dict[str, Any]) -> None:
    """Say that a data folder is replaced if the same command wrote it; raise a `UserError` if it is another one."""
    from neuroseqret.readers.data_folder import CORPUS, META
    from neuroseqret.readers.formats.canonical import read_meta

    if not (out / CORPUS).exists():
        return
    meta = read_meta(out / META) if (out / META).exists() else {}
    if meta.get("asked") != asked:
        title = f" ({meta['title']})" if "title" in meta else ""
        raise UserError(
            f"{out}: holds another data folder{title}, or one made with other options; add --force to replace it, or "
            "choose another --out"
        )
    remarks.print(f"{out}: the data folder there was made by the same command; replacing it", markup=False)


def _only_for(what: str, **options: object) -> None:
    """Raise an error for the first of these options that was given, because it has no meaning here."""
    for name, value in options.items():
        if value not in (None, []):
            raise UserError(f"--{name.replace('_', '-')} is for {what}; leave it out")


def _recordings(items: Iterable[Any], total: int) -> Iterator[Any]:
    return progress(items, "recordings", total)


def _report(made: DataFolder) -> None:
    from neuroseqret.data.splits import SPLITS

    counts = made.meta["counts"]
    by_split = counts["queries_by_split"]
    splits = ", ".join(f"{by_split[split]:,} {split}" for split in SPLITS if split in by_split)
    console.print(
        f"{made.path}: {counts['corpus']:,} corpus sequences, {counts['queries']:,} queries ({splits})", markup=False
    )
    console.print(
        f"{counts['events']:,} events, {counts['marks']} marks, {counts['groups']:,} groups, "
        f"lengths {counts['length_min']} to {counts['length_max']}; details are in {made.path}/meta.json",
        markup=False,
    )
    if "window_events" in made.meta:
        console.print(f"windows of {made.meta['window_events']} events; --events chooses another number", markup=False)
    if left_out := made.meta["left_out"]:
        console.print("left out: " + ", ".join(f"{number:,} {what}" for what, number in left_out.items()))
