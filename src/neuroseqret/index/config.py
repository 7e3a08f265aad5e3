"""The index folder: `index.json`, the model, the store and the derived hot structure.

INDEX/index.json   what it is: format, settings, dimension, meaning of marks and time
INDEX/model/       the model folder that made the embeddings
INDEX/store/       sequences, embeddings and metadata: the truth
INDEX/hot/         derived: memory-mapped arrays for search, rebuilt when missing, damaged or stale
INDEX/*.lock       writers' and builders' locks
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

import neuroseqret
from neuroseqret.candidates import HashFunction, make_hash
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_folder

FORMAT, FORMAT_VERSION = "neuroseqret-index", 1
CONFIG = "index.json"
Method = Literal["auto", "exhaustive", "cells", "buckets", "hamming"]


class IndexSettings(BaseModel):
    """How candidates are found and what a row is; fixed when the index is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    candidates: Method = "auto"
    fraction: float = 0.01  # of the corpus to compare with, at least ...
    at_least: int = 2000  # ... so many sequences
    hash: Literal["network", "rotation", "hyperplanes"] = "network"
    hash_preset: str | None = None  # of the hash network
    bits: int = 64  # R
    tables: int = 10  # M
    table_bits: int | None = None  # L; by corpus size and `fraction` when not set
    window_events: int | None = None
    window_duration: float | None = None
    window_step: float | None = None

    @property
    def windowed(self) -> bool:
        return self.window_events is not None or self.window_duration is not None


def make_settings(options: dict[str, Any]) -> IndexSettings:
    """Settings from a user's options, with one clear line for a mistake."""
    try:
        made = IndexSettings(**options)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"index option {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    if not 0 < made.fraction <= 1 or made.at_least < 1:
        raise UserError(f"fraction lies in (0, 1] and at_least is 1 or more, not {made.fraction:g} and {made.at_least}")
    _check_windows(made)
    _check_hash(made)
    return made


def _check_windows(settings: IndexSettings) -> None:
    if settings.window_events is not None and settings.window_duration is not None:
        raise UserError("windows have either a number of events or a duration, not both")
    if settings.windowed:
        some = EventSequences.from_lists([([0.0], [0])])
        some.windows(settings.window_events, settings.window_duration, settings.window_step)
    elif settings.window_step is not None:
        raise UserError("window_step needs window_events or window_duration")


def _check_hash(settings: IndexSettings) -> None:
    if settings.hash_preset is not None and settings.hash != "network":
        raise UserError(f"hash_preset belongs to the hash 'network', not to {settings.hash!r}")
    bits = make_hash_function(settings).bits
    if not 1 <= settings.tables <= 255:
        raise UserError(f"there are 1 to 255 bucket tables, not {settings.tables}")
    if settings.table_bits is not None and not 1 <= settings.table_bits <= min(bits, 24):
        raise UserError(f"a bucket table takes 1 to {min(bits, 24)} of the {bits} bits, not {settings.table_bits}")


def make_hash_function(settings: IndexSettings) -> HashFunction:
    """The hash of an index, not fitted yet."""
    options = {} if settings.hash_preset is None else {"preset": settings.hash_preset}
    return make_hash(settings.hash, settings.bits, **options)


class IndexConfig(BaseModel):
    """The content of `index.json`."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    library_version: str = neuroseqret.__version__
    model: str
    dimension: int
    tensors_blake2b: str | None = None  # of the model; not known in early folders
    marks: int | None = None
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    settings: IndexSettings


def create_folder(folder: Path, fill: Callable[[Path], IndexConfig]) -> IndexConfig:
    """Make the folder in one step: `fill` writes model and store into a temporary sibling, which is then renamed."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "an index is there already; add to it with 'neuroseqret index add', or make one of a new model elsewhere"
        raise UserError(f"{folder}: {what if (folder / CONFIG).exists() else 'exists and is not empty'}")
    with new_folder(folder, CONFIG) as temporary:
        config = fill(temporary)
        (temporary / CONFIG).write_text(config.model_dump_json(indent=1) + "\n")
    return config


def read_config(folder: Path) -> IndexConfig:
    """`index.json`, checked."""
    path = folder / CONFIG
    if not path.is_file():
        raise UserError(f"{folder}: not an index ({CONFIG} is missing); make one with 'neuroseqret index create'")
    try:
        found = json.loads(path.read_text())
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({error}); make the index again") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(f"{path}: not written by neuroseqret; make an index with 'neuroseqret index create'")
    if found.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{path}: format version {found.get('format_version')}, this library reads {FORMAT_VERSION}; "
            "install the library version that wrote it or make the index again"
        )
    try:
        return IndexConfig.model_validate(found)
    except ValidationError as error:
        raise UserError(f"{path}: damaged ({error.errors()[0]['msg']}); make the index again") from error
