"""The formats by name: how each is read, streamed and written, and what it has room for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike, fspath

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import capacity as losses
from neuroseqret.readers.capacity import Part
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
#: One sequence or many.
Sequences = EventSequence | EventSequences | Iterable[EventSequence]

_EVERYTHING = frozenset(Part)
_JSON = _EVERYTHING - {Part.JSON_TYPES, Part.MARK_NAMES, Part.TIME_UNIT}


@dataclass(frozen=True)
class Format:
    """A format.

    `holds` says what it has room for beside times and marks, `suffixes` which names of files make `write` choose
    it, `own_names` which column names it needs for itself, `mapped` whether a column map can rename its columns.
    """

    name: str
    title: str
    read: Callable[[Path, Options], EventSequences]
    write: Callable[[EventSequences, Path], None]
    holds: frozenset[Part]
    scan: Callable[[Path, Options, int], Iterator[EventSequences]] | None = None
    suffixes: tuple[str, ...] = ()
    own_names: tuple[str, ...] = ()
    mapped: bool = True


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
        holds=frozenset({Part.IDS, Part.EVENTLESS, Part.MARK_NAMES, Part.MARK_COUNT, Part.TIME_UNIT}),
        scan=hotpp.scan,
    ),
    Format(
        name="lifestream",
        title="pytorch-lifestream Parquet: event_time and a list a feature",
        read=lifestream.read,
        write=lifestream.write,
        holds=_EVERYTHING,
        scan=lifestream.scan,
        own_names=(lifestream.TIME, lifestream.MARK),
    ),
    Format(
        name="long-parquet",
        title="long table as Parquet: a row an event",
        read=long_parquet.read,
        write=long_parquet.write,
        holds=_EVERYTHING - {Part.EVENTLESS},
        scan=long_parquet.scan,
        own_names=tuple(long_parquet.NAMES.values()),
    ),
    Format(
        name="long-csv",
        title="long table as CSV: a line an event",
        read=long_csv.read,
        write=long_csv.write,
        holds=frozenset({Part.IDS, Part.WINDOWS, Part.GROUPS, Part.SPLIT, Part.COLUMNS, Part.EVENT_LISTS}),
        scan=long_csv.scan,
        suffixes=(".csv", ".tsv"),
        own_names=tuple(long_csv.NAMES.values()),
    ),
    Format(
        name="easytpp-json",
        title="EasyTPP JSON: an array of sequences",
        read=easytpp.read,
        write=easytpp.write,
        holds=_JSON,
        suffixes=(".json",),
        own_names=(*easytpp.ROLES.values(), *easytpp.DERIVED),
    ),
    Format(
        name="easytpp-jsonl",
        title="EasyTPP JSON lines: a sequence a line",
        read=easytpp.read_lines,
        write=easytpp.write_lines,
        holds=_JSON,
        scan=easytpp.scan_lines,
        suffixes=(".jsonl", ".ndjson"),
        own_names=(*easytpp.ROLES.values(), *easytpp.DERIVED),
    ),
    Format(
        name="gatech",
        title="Georgia Tech pickle of NHP and THP",
        read=gatech.read,
        write=gatech.write,
        holds=frozenset({Part.SPLIT, Part.EVENTLESS, Part.MARK_COUNT}),
        suffixes=(".pkl", ".pickle"),
        mapped=False,
    ),
    Format(
        name="ifl-tpp",
        title="ifl-tpp torch file",
        read=ifl_tpp.read,
        write=ifl_tpp.write,
        holds=frozenset({Part.IDS, Part.WINDOWS, Part.GROUPS, Part.EVENTLESS, Part.MARK_COUNT}),
        suffixes=(".pt", ".pth"),
        mapped=False,
    ),
    Format(
        name="paired-text",
        title="paired text files NAME_ev.txt and NAME_ti.txt",
        read=paired_text.read,
        write=paired_text.write,
        holds=frozenset(),
        suffixes=(paired_text.MARKS_END, paired_text.TIMES_END),
        mapped=False,
    ),
)
FORMATS: dict[str, Format] = {each.name: each for each in _ALL}


def format_named(name: str) -> Format:
    """The format of a name, or an error that lists them."""
    if name not in FORMATS:
        raise UserError(f"no format is called {name!r}; there are {', '.join(FORMATS)}")
    return FORMATS[name]


def format_for_writing(path: Path) -> Format:
    """The format that a file's name asks for."""
    name = fspath(path).lower()
    for each in _ALL:
        if each.suffixes and name.endswith(each.suffixes):
            return each
    known = ", ".join(suffix for each in _ALL for suffix in each.suffixes)
    raise UserError(f"{path}: the name does not tell a format; say format=... (--to) or end it in {known}")


def lost_by(sequences: Sequences, name: str) -> list[str]:
    """In words, what these sequences carry and a file of the format would not; empty if nothing is lost."""
    return losses.lost(EventSequences.of(sequences), format_named(name).holds)


def check_names(sequences: EventSequences, chosen: Format, path: Path) -> None:
    """No metadata column may have a name that the format needs for itself."""
    for name in sequences.metadata.column_names:
        if name in chosen.own_names:
            raise DataError(f"{chosen.name} needs the name {name!r} for itself", file=path, remedy="rename the column")
