"""`neuroseqret data info`: print what a file or data folder holds, and its flaws."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from neuroseqret.cli.console import out, print_table
from neuroseqret.cli.event_files import COLUMNS, FORMAT, PICKLE, TIME_FORMAT, file_options

if TYPE_CHECKING:
    from neuroseqret.data.statistics import RetrievalStatistics, Statistics


def info(
    file: Path = typer.Argument(
        ..., metavar="FILE", help="File of event sequences in any known format, or a data folder."
    ),
    format: str | None = FORMAT,
    column: list[str] = COLUMNS,
    time_format: str | None = TIME_FORMAT,
    allow_pickle: bool = PICKLE,
    as_json: bool = typer.Option(False, "--json", help="Print JSON instead of text."),
) -> None:
    """Show what a file holds, and its flaws.

    Prints the number of sequences and events, their lengths, the unit of time, the gaps between events, the sizes of
    groups and how often each mark occurs. Flaws, such as times that decrease, are listed and do not stop the command;
    so is what looks wrong, such as times in milliseconds.
    """
    from neuroseqret.data.statistics import describe, describe_retrieval
    from neuroseqret.readers import read, sniff
    from neuroseqret.readers.data_folder import read_folder
    from neuroseqret.readers.formats.canonical import is_data_folder
    from neuroseqret.readers.options import Options

    if is_data_folder(file):
        folder = read_folder(file, validate=False)
        if folder.queries is None:
            title, numbers, lines = f"{folder.name} (data folder without queries)", describe(folder.corpus), []
        else:
            whole = describe_retrieval(folder.corpus, folder.queries, folder.relevance)
            title, numbers, lines = f"{folder.name} (data folder)", whole.everything, _retrieval_lines(whole)
    else:
        options = file_options(column, time_format)
        known = format or sniff(file, Options.of(options["columns"]).roles)
        sequences = read(file, format=known, allow_pickle=allow_pickle, validate=False, **options)
        title, numbers, lines = f"{file.name} ({known})", describe(sequences), []
    held = folder.corpus if is_data_folder(file) else sequences
    if names := [name for name in held.metadata.column_names if name != "split"]:
        lines.append(f"further columns: {', '.join(names)}")
    if as_json:
        typer.echo(json.dumps(_as_json(numbers), indent=1, ensure_ascii=False))
        return
    _print(title, numbers, lines)


def _retrieval_lines(whole: RetrievalStatistics) -> list[str]:
    """Describe corpus, queries and relevance of a data folder."""
    splits = ", ".join(f"{count:,} {split}" for split, count in whole.queries_by_split.items())
    asked = f"{whole.queries:,} queries" + (f" ({splits})" if splits else "")
    lines = [f"{whole.corpus:,} in the corpus, {asked}"]
    if whole.relevant_per_query_mean is not None:
        lines.append(f"{whole.relevant_per_query_mean:.2f} relevant per query")
    if whole.queries_without_relevant:
        lines.append(f"{whole.queries_without_relevant:,} queries have no relevant sequence in the corpus")
    return lines


def _as_json(numbers: Statistics) -> dict[str, Any]:
    """Return the numbers with flaws and doubts as lines."""
    from neuroseqret.data.doubts import doubts

    flaws = [{"kind": flaw.kind, "count": flaw.count, "first": str(flaw.error())} for flaw in numbers.flaws]
    quantiles = {str(share): gap for share, gap in numbers.gap_quantiles.items()}
    return {**asdict(numbers), "gap_quantiles": quantiles, "flaws": flaws, "doubts": doubts(numbers)}


def _print(title: str, numbers: Statistics, lines: list[str]) -> None:
    """Print the facts as a table of two columns, then histograms of lengths, groups and marks."""
    from neuroseqret.data.doubts import doubts
    from neuroseqret.data.durations import duration, is_date, span

    facts = Table(box=None, show_header=False, title=escape(title), title_justify="left", title_style="bold")
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column()
    parts: dict[str, int | None] = {"sequence": numbers.sequences, "event": numbers.events, "mark": numbers.marks}
    parts |= {"group": numbers.groups, "source": numbers.sources}
    counts = [f"{n:,} {what}{'' if n == 1 else 's'}" for what, n in parts.items() if n is not None]
    facts.add_row("holds", ", ".join(counts))
    for line in lines:
        facts.add_row("", line)
    if numbers.length_min is not None:
        facts.add_row(
            "length", f"min {numbers.length_min:,}, median {numbers.length_median:g}, max {numbers.length_max:,} events"
        )
    facts.add_row("time unit", escape(numbers.time_unit or "not given"))
    if numbers.first_time is not None:
        assert numbers.last_time is not None
        first, last, unit = numbers.first_time, numbers.last_time, numbers.time_unit
        window = "" if numbers.span_median is None else f", median window {duration(numbers.span_median, unit)}"
        facts.add_row("times", f"{_plain(first)} to {_plain(last)}{window}")
        if is_date([first, last], unit):
            facts.add_row("as dates", f"{span(first, last, unit)} UTC")
    if numbers.gap_quantiles and numbers.gap_mean is not None:
        unit = numbers.time_unit
        shown = ", ".join(f"{100 * q:g}% {duration(value, unit)}" for q, value in numbers.gap_quantiles.items())
        facts.add_row("gaps", f"mean {duration(numbers.gap_mean, unit)}, ties {numbers.zero_gaps:.1%}")
        facts.add_row("", f"quantiles {shown}")
    for doubt in doubts(numbers):
        facts.add_row("looks wrong", escape(doubt), style="yellow")
    if numbers.flaws:
        for flaw in numbers.flaws:
            facts.add_row("flaw", escape(f"{flaw.kind}, {_times(flaw.count)}; first: {flaw.error()}"), style="red")
    else:
        facts.add_row("flaws", "none found")
    print_table(facts)
    edges = numbers.lengths.edges
    spans = [f"{a:g}" if b - a == 1 else f"{a:g} to {b - 1:g}" for a, b in pairwise(edges)]
    _bars("events in a sequence", dict(zip(spans, numbers.lengths.counts, strict=True)))
    _bars("group", numbers.group_sizes, most=12)
    _bars("mark", {"empty" if name == "-1" else name: n for name, n in numbers.mark_counts.items()}, most=30)


def _plain(time: float) -> str:
    """Return a time without an exponent, unless it is too small or too large to be read."""
    return f"{time:,.0f}" if 1e10 <= abs(time) < 1e18 else f"{time:.10g}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


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
    print_table(table)
    if len(names) < len(counts):
        out.print(f"and {len(counts) - len(names)} more")
