"""A place that a command works on: the folder of an index, or the address of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.meaning import Meaning
    from neuroseqret.index import Index
    from neuroseqret.serving.client import RemoteIndex


def open_index(place: Path) -> Index | RemoteIndex:
    """Open the index in a folder, or connect to the server at an address; its key is in NEUROSEQRET_KEY."""
    if not str(place).startswith(("http:/", "https:/")):
        return open_folder(place)
    from neuroseqret.serving.client import connect, url_of

    return connect(url_of(place) or str(place))


def open_folder(place: Path) -> Index:
    """Open the index in a folder, for commands that work on its files."""
    if str(place).startswith(("http:/", "https:/")):
        raise UserError("this command works on the files of an index; run it where the folder is, not on a server")
    from neuroseqret.index import Index

    return Index.open(place)


def meaning_of(index: Index | RemoteIndex) -> Meaning:
    """Return what marks and times mean in an index."""
    from neuroseqret.index import Index

    return index.config.meaning if isinstance(index, Index) else index.meaning


def name_of(index: Index | RemoteIndex) -> str:
    """Return what messages call an index."""
    from neuroseqret.index import Index

    return index.name if isinstance(index, Index) else index.url


def strictness(index: Index | RemoteIndex, strict: bool) -> dict[str, Any]:
    """Return the option `strict` of an index in a folder; a server does not compare time units."""
    from neuroseqret.index import Index

    if strict and not isinstance(index, Index):
        raise UserError("--strict works on the folder of an index, not on a server; leave it out")
    return {"strict": True} if strict else {}
