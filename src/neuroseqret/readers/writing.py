"""`write`: sequences to a file in any format, with a warning about what the format cannot hold."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from os import PathLike, fspath

from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.errors import DataError, UserError
from neuroseqret.readers import capacity
from neuroseqret.readers.registry import FORMATS, Format, Path, format_named
from neuroseqret.storage.reading import check_path

#: One sequence or many.
Sequences = EventSequence | EventSequences | Iterable[EventSequence]


class LossWarning(UserWarning):
    """A file was written in a format that cannot hold everything in the sequences."""


def write(sequences: Sequences, path: str | PathLike[str], format: str | None = None) -> None:
    """Write one sequence or many, completely or not at all, and warn about what the format has no room for.

    The format is `format`, else the one that the file name asks for.
    """
    chosen = format_named(format) if format else format_for_writing(path)
    check_path(path)
    try:
        many = EventSequences.of(sequences)
        check_names(many, chosen, path)
        chosen.write(many, path)
    except DataError as error:
        error.file = error.file or path
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror or error})") from error
    if lost := lost_by(many, chosen.name):
        warnings.warn(f"{path}: {chosen.name} has no room for {', '.join(lost)}", LossWarning, stacklevel=2)


def format_for_writing(path: Path) -> Format:
    """Return the format that the name of a file asks for."""
    name = fspath(path).lower()
    for each in FORMATS.values():
        if each.suffixes and name.endswith(each.suffixes):
            return each
    known = ", ".join(suffix for each in FORMATS.values() for suffix in each.suffixes)
    raise UserError(f"{path}: the name does not tell the format; say format=... (--to), or end it in {known}")


def lost_by(sequences: Sequences, name: str) -> list[str]:
    """Return, in words, what a file of the format would lose of these sequences; empty if nothing is lost."""
    return capacity.losses(EventSequences.of(sequences), format_named(name).holds)


def check_names(sequences: EventSequences, chosen: Format, path: Path) -> None:
    """Raise a `DataError` if a metadata column has a name that the format uses itself."""
    for name in sequences.metadata.column_names:
        if name in chosen.reserved_names:
            raise DataError(f"{chosen.name} uses the name {name!r} itself", file=path, remedy="rename the column")
