"""How `index create` and `index add` read a corpus in batches, add them with a progress bar, and say what was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroseqret.cli.console import print_json, progress, remarks
from neuroseqret.cli.places import name_of

if TYPE_CHECKING:
    from neuroseqret.data.meaning import Meaning
    from neuroseqret.data.sequences import EventSequences
    from neuroseqret.index import Index
    from neuroseqret.serving.client import RemoteIndex

_BATCH = 8192


def scan(corpus: Path, meaning: Meaning, options: dict[str, Any], unknown_marks: str) -> Iterator[EventSequences]:
    """Read the corpus in batches, with marks numbered as the model's."""
    from neuroseqret.data.meaning import unknown_marks_choice
    from neuroseqret.readers import scan_or_read

    choice = unknown_marks_choice(unknown_marks)
    batches = scan_or_read(_file(corpus), _BATCH, **options)
    return (meaning.apply(batch, choice, corpus) for batch in batches)


def _file(corpus: Path) -> Path:
    """Return the file to read: the corpus of a data folder, or the path itself."""
    from neuroseqret.readers.formats.canonical import is_data_folder

    return corpus / "corpus.parquet" if is_data_folder(corpus) else corpus


def add(
    index: Index | RemoteIndex,
    batches: Iterator[EventSequences],
    corpus: Path,
    upsert: bool,
    as_json: bool,
    **how: Any,
) -> None:
    """Add batches and say what was done; `how` are further options of `Index.add`."""
    shown = progress(batches, "indexing", _number_of_sequences(corpus), count=len)
    done = index.add(shown, upsert=upsert, unknown_marks="keep", **how)  # decided by `scan`, which knows the file
    if hasattr(index, "refresh"):  # a server refreshes itself
        index.refresh()
    if as_json:
        print_json({**asdict(done), **size_of(index)})
        return
    parts = [f"{counted(done.added, 'sequence')} added"]
    if done.replaced:
        parts.append(f"{done.replaced:,} replaced")
    if done.already_there:
        parts.append(f"{done.already_there:,} already there")
    remarks.print(f"{', '.join(parts)}; {holds(index)}", markup=False)


def size_of(index: Index | RemoteIndex) -> dict[str, int]:
    """Return the numbers of sequences and, in an index of windows, of windows."""
    return {name: number for name, number in index.info().items() if name in ("sequences", "windows")}


def holds(index: Index | RemoteIndex) -> str:
    """Say what an index holds, in sequences; the windows that they are cut into are extra."""
    size = size_of(index)
    windows = f" ({counted(size['windows'], 'window')})" if "windows" in size else ""
    return f"{name_of(index)} now holds {counted(size['sequences'], 'sequence')}{windows}"


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _number_of_sequences(corpus: Path) -> int | None:
    """Return the number of sequences for the progress bar, or None if the file does not state it."""
    import pyarrow.parquet as pq
    from pyarrow import ArrowInvalid

    try:
        read = pq.read_metadata(_file(corpus))
    except (ArrowInvalid, OSError):
        return None
    lists = any(read.schema.column(place).max_repetition_level for place in range(read.num_columns))
    return read.num_rows if lists else None  # without lists, a row is an event
