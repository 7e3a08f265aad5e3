"""The formats by name: how each is read, streamed and written, and what it has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import PathLike

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.readers.capacity import Content
from neuroseqret.readers.formats import (
    canonical,
    easytpp,
    gatech,
    hotpp,
    ifl_tpp,
    lifestream,
    long_csv,
    long_parquet,
    paired_text,
)
from neuroseqret.readers.options import Options

Path = str | PathLike[str]

_EVERYTHING = frozenset(Content)
_JSON = _EVERYTHING - {Content.TYPES_BEYOND_JSON, Content.MARK_NAMES, Content.TIME_UNIT}


@dataclass(frozen=True)
class Format:
    """How a format is read, streamed and written.

    - `holds`: what it has room for besides times and marks;
    - `suffixes`: file names with these endings make `write` choose it;
    - `reserved_names`: column names that it uses itself, so that no metadata column may have them;
    - `takes_column_map`: whether `columns=` may name other columns than its own.
    """

    name: str
    title: str
    read: Callable[[Path, Options], EventSequences]
    write: Callable[[EventSequences, Path], None]
    holds: frozenset[Content]
    scan: Callable[[Path, Options, int], Iterator[EventSequences]] | None = None
    suffixes: tuple[str, ...] = ()
    reserved_names: tuple[str, ...] = ()
    takes_column_map: bool = True


_ALL = (
    Format(
        name="canonical",
        title="canonical Parquet: id, times, marks, ...",
        read=canonical.read,
        write=canonical.write,
        holds=_EVERYTHING,
        scan=canonical.scan,
        suffixes=(".parquet",),
    ),
    Format(
        name="hotpp",
        title="HoTPP Parquet: id, timestamps, labels",
        read=hotpp.read,
        write=hotpp.write,
        holds=frozenset(
            {Content.IDS, Content.EMPTY_SEQUENCES, Content.MARK_NAMES, Content.MARK_COUNT, Content.TIME_UNIT}
        ),
        scan=hotpp.scan,
    ),
    Format(
        name="lifestream",
        title="pytorch-lifestream Parquet: event_time and one list per feature",
        read=lifestream.read,
        write=lifestream.write,
        holds=_EVERYTHING,
        scan=lifestream.scan,
        reserved_names=(lifestream.TIME, lifestream.MARK),
    ),
    Format(
        name="long-parquet",
        title="long table as Parquet: one row per event",
        read=long_parquet.read,
        write=long_parquet.write,
        holds=_EVERYTHING - {Content.EMPTY_SEQUENCES},
        scan=long_parquet.scan,
        reserved_names=tuple(long_parquet.NAMES.values()),
    ),
    Format(
        name="long-csv",
        title="long table as CSV: one line per event",
        read=long_csv.read,
        write=long_csv.write,
        holds=frozenset(
            {Content.IDS, Content.WINDOWS, Content.GROUPS, Content.SPLIT, Content.COLUMNS, Content.EVENT_COLUMNS}
        ),
        scan=long_csv.scan,
        suffixes=(".csv", ".tsv"),
        reserved_names=tuple(long_csv.NAMES.values()),
    ),
    Format(
        name="easytpp-json",
        title="EasyTPP JSON: an array of sequences",
        read=easytpp.read,
        write=easytpp.write,
        holds=_JSON,
        suffixes=(".json",),
        reserved_names=(*easytpp.ROLES.values(), *easytpp.DERIVED),
    ),
    Format(
        name="easytpp-jsonl",
        title="EasyTPP JSON lines: one sequence per line",
        read=easytpp.read_lines,
        write=easytpp.write_lines,
        holds=_JSON,
        scan=easytpp.scan_lines,
        suffixes=(".jsonl", ".ndjson"),
        reserved_names=(*easytpp.ROLES.values(), *easytpp.DERIVED),
    ),
    Format(
        name="gatech",
        title="Georgia Tech pickle of NHP and THP",
        read=gatech.read,
        write=gatech.write,
        holds=frozenset({Content.SPLIT, Content.EMPTY_SEQUENCES, Content.MARK_COUNT}),
        suffixes=(".pkl", ".pickle"),
        takes_column_map=False,
    ),
    Format(
        name="ifl-tpp",
        title="ifl-tpp torch file",
        read=ifl_tpp.read,
        write=ifl_tpp.write,
        holds=frozenset({Content.IDS, Content.WINDOWS, Content.GROUPS, Content.EMPTY_SEQUENCES, Content.MARK_COUNT}),
        suffixes=(".pt", ".pth"),
        takes_column_map=False,
    ),
    Format(
        name="paired-text",
        title="paired text files NAME_ev.txt and NAME_ti.txt",
        read=paired_text.read,
        write=paired_text.write,
        holds=frozenset(),
        suffixes=(paired_text.MARKS_END, paired_text.TIMES_END),
        takes_column_map=False,
    ),
)
FORMATS: dict[str, Format] = {each.name: each for each in _ALL}


def format_named(name: str) -> Format:
    """Return the format with this name, or raise a `UserError` that lists them."""
    if name not in FORMATS:
        raise UserError(f"no format is called {name!r}; choose from {', '.join(FORMATS)}")
    return FORMATS[name]
