"""Find the data folders that an experiment is to run on."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from neuroseqret.errors import UserError
from neuroseqret.readers.data_folder import CORPUS, QUERIES


def find_data(given: Sequence[str | PathLike[str]]) -> dict[str, Path]:
    """Return data folders by name: each given folder, or the data folders inside it."""
    found: dict[str, Path] = {}
    for place in map(Path, given):
        inside = [place] if (place / CORPUS).exists() else sorted(p.parent for p in place.glob(f"*/{CORPUS}"))
        if not inside:
            raise UserError(f"{place}: is not a data folder and holds none; a data folder has a {CORPUS}")
        for folder in inside:
            name = folder.resolve().name
            if name in found and found[name].resolve() != folder.resolve():
                raise UserError(f"{folder}: two data folders are called {name}; rename one")
            if not (folder / QUERIES).exists():
                raise UserError(f"{folder}: has no {QUERIES}, so there is nothing to ask; make it with 'data prepare'")
            found[name] = folder
    return found
