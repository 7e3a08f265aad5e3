"""A place that a command works on: the folder of an index, or the address of a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from neuroseqret.errors import UserError

if TYPE_CHECKING:
    from neuroseqret.data.meaning import Meaning
    from neuroseqret.index import Index
    from neuroseqret.models.card import ModelCard
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


@dataclass(frozen=True)
class TrainingColumns:
    """What a server tells of its training data."""

    columns: Mapping[str, str | None] | None
    time_format: str | None = None


def training_columns_of(index: Index | RemoteIndex) -> ModelCard | TrainingColumns | None:
    """Return what knows the names of the columns in the training data: the model's card, or a server's description."""
    from neuroseqret.index import Index

    if isinstance(index, Index):
        return index.card
    told = index.info()
    return TrainingColumns(told.get("training_columns"), told.get("time_format"))


def name_of(index: Index | RemoteIndex) -> str:
    """Return what messages call an index."""
    from neuroseqret.index import Index

    return index.name if isinstance(index, Index) else index.url


DEVICE = typer.Option(
    None, "--device", metavar="NAME", help="Device to compute vectors on: cpu, cuda or mps. GPUs are untested."
)


def move_model(index: Index | RemoteIndex, device: str | None) -> None:
    """Move the model of an index to the device that `--device` names."""
    from neuroseqret.index import Index

    if device is None:
        return
    if not isinstance(index, Index):
        raise UserError("--device works on the folder of an index; a server computes where it runs, so leave it out")
    index.model.to(device_named(device))


def device_named(name: str) -> str:
    """Return a name given with `--device`; raise a `UserError` if it is none of those, or absent."""
    from neuroseqret.models.devices import DEVICES, usable

    if name not in DEVICES:
        raise UserError(f"no device is called {name!r}; choose one of {', '.join(DEVICES)}")
    usable(name)
    return name
