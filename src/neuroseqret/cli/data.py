"""`neuroseqret data info` and `data convert`: what is in a file, and the same in another format."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out, remarks
from neuroseqret.cli.listing import Command
from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.data.statistics import Statistics

app = typer.Typer(no_args_is_help=True, help="Look at, convert and prepare event data.")

COLUMNS = typer.Option(
    [],
    "--column",
    metavar="NAME=COLUMN",
    help="Column map, as id=USER, time=WHEN, mark=ACTION; mark= where there is none; may be given several times.",
)
FORMAT = typer.Option(
    None, "--format", metavar="NAME", help="Format of the file, by default told by its content: {formats}."
)
#: What commands that have none of these options say of their files.
ANY_FORMAT = "any known format; run 'data convert' first where it needs --column, --allow-pickle or --repair"
REPAIR = typer.Option(
    None,
    "--repair",
    metavar="WORDS",
    help="Mend the data first: sort, drop, clip, deduplicate (ids), deduplicate-events; several with commas.",
)
PICKLE = typer.Option(False, "--allow-pickle", help="Read pickled files, containers and numbers only.")
_DATES = (1e8, 1e10)  # seconds that may well be dates, from 1973 on: smaller ones are durations


@app.command(cls=Command)
def info(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="File of event sequences in any known format, or a data folder."
    ),
    format: str | None = FORMAT,
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
) -> None:
    """Tell what is in a file, and the flaws found.

    Sizes, lengths, time unit, marks by name, gaps between events.
    """
    from neuroseqret.data.statistics import describe, describe_retrieval
    from neuroseqret.readers import read, sniff
    from neuroseqret.readers.data_folder import read_folder
    from neuroseqret.readers.formats.canonical import is_data_folder
    from neuroseqret.readers.options import Options

    if is_data_folder(file):
        folder = read_folder(file, validate=False)
        if folder.queries is None:
            _print(f"{folder.name} (data folder without queries)", describe(folder.corpus))
            return
        whole = describe_retrieval(folder.corpus, folder.queries, folder.relevance)
        splits = ", ".join(f"{count:,} {split}" for split, count in whole.queries_by_split.items())
        asked = f"{whole.queries:,} queries" + (f" ({splits})" if splits else "")
        lines = [f"{whole.corpus:,} in the corpus, {asked}"]
        if whole.relevant_per_query_mean is not None:
            lines.append(f"{whole.relevant_per_query_mean:.2f} relevant per query")
        if whole.queries_without_relevant:
            lines.append(f"{whole.queries_without_relevant:,} queries have nothing relevant in the corpus")
        _print(f"{folder.name} (data folder)", whole.everything, lines)
        return
    columns = column_map(column)
    known = format or sniff(file, Options.of(columns).roles)
    sequences = read(file, format=known, columns=columns, allow_pickle=allow_pickle, validate=False)
    _print(f"{file.name} ({known})", describe(sequences))


@app.command(cls=Command)
def convert(
    source: Path = typer.Argument(..., metavar="IN", help="File of event sequences in any known format."),
    target: Path = typer.Argument(..., metavar="OUT", help="File to write; untouched if anything is wrong."),
    format: str | None = FORMAT,
    to: str | None = typer.Option(
        None, "--to", metavar="NAME", help="Format to write, one of those above; by the ending of OUT by default."
    ),
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
    repair: str | None = REPAIR,
    time_unit: str | None = typer.Option(
        None, "--time-unit", metavar="UNIT", help="What one unit of time is, to keep with the data."
    ),
) -> None:
    """Write a file in another format, after validation."""
    from neuroseqret.readers import write

    sequences = read_mended(source, repair, format, column, time_unit, allow_pickle)
    write(sequences, target, to)
    remarks.print(f"{len(sequences):,} sequences written to {target}", markup=False)


def read_mended(
    source: Path, repair: str | None, format: str | None, column: list[str], time_unit: str | None, allow_pickle: bool
) -> EventSequences:
    """The sequences of a file, repaired as the words of `--repair` say, and valid."""
    from neuroseqret.data.repair import repair as mend
    from neuroseqret.readers import read

    sequences = read(
        source,
        format=format,
        columns=column_map(column),
        allow_pickle=allow_pickle,
        time_unit=time_unit,
        validate=not repair,
    )
    if repair:
        sequences, report = mend(sequences, [action.strip() for action in repair.split(",")])
        remarks.print(f"repaired: {report}", markup=False)
        sequences.validate(source)
    return sequences


def column_map(columns: list[str]) -> dict[str, str | None] | None:
    """Column map from NAME=COLUMN words; NAME= says that there is no such column."""
    named: dict[str, str | None] = {}
    for word in columns:
        name, equals, column = word.partition("=")
        if not (name and equals):
            raise UserError(f"--column {word}: write it as NAME=COLUMN, for example time=timestamp")
        named[name] = column or None
    return named or None


def _print(title: str, numbers: Statistics, lines: list[str] | None = None) -> None:
    facts = Table(box=None, show_header=False, title=escape(title), title_justify="left", title_style="bold")
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column()
    counts = [f"{numbers.sequences:,} sequences", f"{numbers.events:,} events", f"{numbers.marks} marks"]
    counts += [
        f"{n:,} {what}" for n, what in ((numbers.groups, "groups"), (numbers.sources, "sources")) if n is not None
    ]
    facts.add_row("holds", ", ".join(counts))
    for line in lines or []:
        facts.add_row("", line)
    if numbers.length_min is not None:
        facts.add_row(
            "length", f"min {numbers.length_min:,}, median {numbers.length_median:g}, max {numbers.length_max:,} events"
        )
    facts.add_row("time unit", escape(numbers.time_unit or "not given"))
    if numbers.first_time is not None:
        assert numbers.last_time is not None
        first, last = numbers.first_time, numbers.last_time
        window = "" if numbers.span_median is None else f", median window {numbers.span_median:g}"
        facts.add_row("times", f"{first:.10g} to {last:.10g}{window}")
        if numbers.time_unit == "seconds" and _DATES[0] <= first <= last <= _DATES[1]:
            days = [datetime.fromtimestamp(int(time), timezone.utc) for time in (first, last)]
            facts.add_row("", f"{days[0]:%Y-%m-%d %H:%M:%S} to {days[1]:%Y-%m-%d %H:%M:%S} UTC, if counted from 1970")
    if numbers.gap_quantiles:
        shown = ", ".join(f"{100 * q:g}% {value:.4g}" for q, value in numbers.gap_quantiles.items())
        facts.add_row("gaps", f"mean {numbers.gap_mean:.4g}, ties {numbers.zero_gaps:.1%}")
        facts.add_row("", f"quantiles {shown}")
    if numbers.flaws:
        for flaw in numbers.flaws:
            facts.add_row("flaw", escape(f"{flaw.kind}, {flaw.count:,} times; first: {flaw.error()}"), style="red")
    else:
        facts.add_row("flaws", "none found")
    out.print(facts)
    edges = numbers.lengths.edges
    spans = [f"{a:g}" if b - a == 1 else f"{a:g} to {b - 1:g}" for a, b in pairwise(edges)]
    _bars("events in a sequence", dict(zip(spans, numbers.lengths.counts, strict=True)))
    _bars("mark", numbers.mark_counts, most=30)


def _bars(what: str, counts: dict[str, int], most: int | None = None) -> None:
    """A small horizontal histogram in text; the most frequent ones where there are too many."""
    names = list(counts)
    if most is not None and len(names) > most:
        names = sorted(names, key=lambda name: -counts[name])[:most]
    longest, total = max(counts.values(), default=0), sum(counts.values())
    if not total:
        return
    table = Table(box=None, pad_edge=False)
    table.add_column(what, no_wrap=True, max_width=40)
    table.add_column("number", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for name in names:
        bar = "█" * round(30 * counts[name] / longest) or ("▏" if counts[name] else "")
        table.add_row(escape(name), f"{counts[name]:,}", f"{counts[name] / total:.1%}", f"[blue]{bar}[/]")
    out.print()
    out.print(table)
    if len(names) < len(counts):
        out.print(f"and {len(counts) - len(names)} more")
