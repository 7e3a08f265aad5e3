"""The index folder: `index.json`, and the settings of an index.

INDEX/index.json   what the index is: format, settings, dimension, meaning of marks and times
INDEX/model/       the model folder that made the embeddings
INDEX/store/       sequences, embeddings and metadata: the truth; `synced.json` names the last version that is safe
INDEX/hot/         derived from the store: memory-mapped arrays for search; rebuilt if missing, damaged or too old
INDEX/*.lock       locks of processes that write or build
INDEX/engine*      with an engine: the hash function of its binary codes; a mark while a change is on its way there
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

import neuroseqret
from neuroseqret.candidates.settings import CandidateSettings
from neuroseqret.data.meaning import Meaning
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_folder
from neuroseqret.storage.reading import naming_path, read_json

FORMAT, FORMAT_VERSION = "neuroseqret-index", 1
CONFIG = "index.json"


class IndexSettings(CandidateSettings):
    """How candidates are found, and what a row is: a sequence or a window. Fixed when the index is made."""

    window_events: int | None = None
    window_duration: float | None = None
    window_step: float | None = None

    @property
    def windowed(self) -> bool:
        """Whether a row is a window of a sequence."""
        return self.window_events is not None or self.window_duration is not None

    def check(self) -> None:
        """Raise a `UserError` if the values cannot be used, alone or together."""
        super().check()
        if self.window_events is not None and self.window_duration is not None:
            raise UserError("windows have either a number of events or a duration; give only one of them")
        if self.windowed:
            some = EventSequences.from_lists([([0.0], [0])])
            some.windows(self.window_events, self.window_duration, self.window_step)
        elif self.window_step is not None:
            raise UserError("window_step needs window_events or window_duration")


def make_settings(options: dict[str, Any]) -> IndexSettings:
    """Return the settings for a user's options; raise a `UserError` if one is unknown or cannot be used."""
    try:
        made = IndexSettings(**options)
    except ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"index option {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    made.check()
    made.new_hash()  # raises if there is no such preset
    return made


class IndexConfig(BaseModel):
    """The content of `index.json`."""

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    library_version: str = neuroseqret.__version__
    model: str
    dimension: int = Field(ge=1)
    tensors_blake2b: str | None = None  # of the model; early indexes do not have it
    marks: int | None = None
    mark_names: tuple[str, ...] | None = None
    time_unit: str | None = None
    settings: IndexSettings
    engine: str | None = None  # address of the server that candidates are found by; None: this library finds them
    identity: str | None = None  # which index a collection of the engine belongs to

    @property
    def meaning(self) -> Meaning:
        """What marks and times mean in the index: what they mean to its model."""
        return Meaning(self.marks, self.mark_names, self.time_unit)


@naming_path
def create_folder(folder: Path, fill: Callable[[Path], IndexConfig]) -> IndexConfig:
    """Make the folder in one step: `fill` writes model and store to a temporary folder, which is then renamed."""
    if (folder / CONFIG).exists():
        raise UserError(
            f"{folder}: there is an index already; add to it (Index.open(...).add, 'neuroseqret index add'), or choose "
            "another folder"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists and is not empty; choose another folder")
    with new_folder(folder, CONFIG) as temporary:
        try:
            config = fill(temporary)
        except UserError as error:
            if str(temporary) not in str(error):
                raise
            raise UserError(str(error).replace(str(temporary), str(folder))) from error  # the other one is gone
        (temporary / CONFIG).write_text(config.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return config


@naming_path
def read_config(folder: Path) -> IndexConfig:
    """Read and check `index.json`."""
    path = folder / CONFIG
    if not path.is_file():
        why = f"{CONFIG} is missing" if folder.exists() else "there is no such folder"
        raise UserError(f"{folder}: not an index ({why}); make one with 'neuroseqret index create'")
    return checked_config(read_json(path, "restore a copy or make the index again"), path)


def checked_config(found: Any, path: Path | str) -> IndexConfig:
    """Return the configuration that `index.json` holds; raise a `UserError` if it cannot be used."""
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(f"{path}: not written by neuroseqret; make an index with 'neuroseqret index create'")
    if found.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{path}: format version {found.get('format_version')!s:.20}, this library reads {FORMAT_VERSION}; "
            "install the library version that wrote it, or make the index again"
        )
    try:
        config = IndexConfig.model_validate(found)
        config.settings.check()
    except (ValidationError, UserError) as error:
        flaw = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
        raise UserError(f"{path}: damaged ({flaw}); restore a copy or make the index again") from error
    return config
