"""`neuroseqret data info`: print what a file or data folder holds, and its flaws."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out
from neuroseqret.cli.event_files import COLUMNS, FORMAT, PICKLE, column_map

if TYPE_CHECKING:
    from neuroseqret.data.statistics import Statistics

_DATES = (1e8, 1e10)  # times in seconds from 1973 on are shown as dates too; smaller ones are durations


def info(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="File of event sequences in any known format, or a data folder."
    ),
    format: str | None = FORMAT,
    column: list[str] = COLUMNS,
    allow_pickle: bool = PICKLE,
) -> None:
    """Show what a file holds, and its flaws.

    Prints the number of sequences and events, their lengths, the unit of time, the gaps between events and how often
    each mark occurs. Flaws, such as times that decrease, are listed and do not stop the command.
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
            lines.append(f"{whole.queries_without_relevant:,} queries have no relevant sequence in the corpus")
        _print(f"{folder.name} (data folder)", whole.everything, lines)
        return
    columns = column_map(column)
    known = format or sniff(file, Options.of(columns).roles)
    sequences = read(file, format=known, columns=columns, allow_pickle=allow_pickle, validate=False)
    _print(f"{file.name} ({known})", describe(sequences))


def _print(title: str, numbers: Statistics, lines: list[str] | None = None) -> None:
    """Print the facts as a table of two columns, then histograms of lengths and marks."""
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
            facts.add_row("as dates", f"{days[0]:%Y-%m-%d %H:%M:%S} to {days[1]:%Y-%m-%d %H:%M:%S} UTC")
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
    """Print a small horizontal histogram; of more than `most` names only the most frequent ones."""
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
