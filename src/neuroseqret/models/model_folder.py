"""The model folder: `config.json` and `model.safetensors`, written complete or not at all, checked when read.

`config.json` is the model card with a head: the versions of format and library, a hash of the tensor file and a hash of
the configuration itself. A truncated, swapped or edited file is detected by its hash; otherwise an edited time scale
would silently change every score. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt
from pydantic import ValidationError
from safetensors import SafetensorError

import neuroseqret
from neuroseqret.errors import UserError
from neuroseqret.models.card import ModelCard, ModelState
from neuroseqret.storage.exchange import recover
from neuroseqret.storage.files import new_folder
from neuroseqret.storage.reading import naming_path, read_json

FORMAT, FORMAT_VERSION = "neuroseqret-model", 3  # 3: the model card
CONFIG, TENSORS = "config.json", "model.safetensors"
CONFIG_HASH = "config_blake2b"
HOLDS = (CONFIG, TENSORS, "training.*")
_HEAD = ("format", "format_version", "library_version", "tensors_blake2b", CONFIG_HASH)


@dataclass(frozen=True)
class SavedModel:
    """The content of `config.json`: the card, the hash of the tensor file, and the library version that wrote it."""

    card: ModelCard
    tensors_blake2b: str
    library_version: str


@naming_path
def write_state(folder: str | PathLike[str], state: ModelState, extras: Mapping[str, bytes] | None = None) -> Path:
    """Write a model folder, complete or not at all; `extras` are further files by name (`training.*`).

    An existing folder is replaced only if it is empty, or a model folder that holds no other files.
    """
    with new_folder(folder, *HOLDS) as temporary:
        from safetensors.torch import save  # here, as it imports torch, which a card can be read without

        # safetensors needs contiguous tensors that share no memory; its own save_file makes the file private.
        content = save({k: v.detach().cpu().contiguous().clone() for k, v in state.tensors.items()})
        (temporary / TENSORS).write_bytes(content)
        head = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "library_version": neuroseqret.__version__,
            "tensors_blake2b": hashlib.blake2b(content, digest_size=16).hexdigest(),
        }
        whole = {**head, **state.card.model_dump(mode="json")}
        whole[CONFIG_HASH] = _hash_of_config(whole)
        (temporary / CONFIG).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for file, extra in (extras or {}).items():
            (temporary / file).write_bytes(extra)
    return Path(folder)


@naming_path
def read_saved(folder: str | PathLike[str]) -> SavedModel:
    """Read and check `config.json`: it must be of a model folder, of a known version, and unchanged."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        recover(Path(folder))
    if not path.is_file():
        why = f"{CONFIG} is missing" if Path(folder).exists() else "there is no such folder"
        raise UserError(f"{folder}: not a model folder ({why}); make one with 'neuroseqret fit'")
    config = read_json(path, "fit the model again")
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise UserError(f"{path}: not written by neuroseqret; make a model folder with 'neuroseqret fit'")
    if config.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{path}: has format version {config.get('format_version')!s:.20} (library "
            f"{config.get('library_version')!s:.20}), but this library reads version {FORMAT_VERSION}; fit the model "
            "again, or install the library that wrote it"
        )
    stored = config.pop(CONFIG_HASH, None)
    if stored != _hash_of_config(config):
        raise UserError(f"{path}: changed since it was written; restore it or fit the model again")
    head = {name: config.pop(name, None) for name in _HEAD}
    try:
        card = ModelCard.model_validate(config)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: damaged ({place}: {first['msg'].lower()}); fit the model again") from error
    return SavedModel(card, str(head["tensors_blake2b"]), str(head["library_version"]))


def read_card(folder: str | PathLike[str]) -> ModelCard:
    """Read the card of a model folder."""
    return read_saved(folder).card


@naming_path
def read_state(folder: str | PathLike[str], name: str) -> ModelState:
    """Read card and tensors of a model folder of the named method; raise a `UserError` if anything is wrong."""
    card, path = _checked(folder, name)
    from safetensors.torch import load_file

    with _naming_damage(path):
        return ModelState(card, load_file(path))


@naming_path
def read_arrays(folder: str | PathLike[str], name: str) -> tuple[ModelCard, dict[str, npt.NDArray[Any]]]:
    """Do as `read_state` does, but return numpy arrays, and do not import torch."""
    card, path = _checked(folder, name)
    from safetensors.numpy import load_file

    with _naming_damage(path):
        return card, load_file(path)


def _checked(folder: str | PathLike[str], name: str) -> tuple[ModelCard, Path]:
    """Return the card and the tensor file of a model folder; raise a `UserError` if they do not belong together."""
    saved = read_saved(folder)
    if saved.card.model != name:
        raise UserError(f"{folder}: holds a {saved.card.model!r} model, not {name!r}")
    path = Path(folder) / TENSORS
    if not path.is_file():
        raise UserError(f"{folder}: {TENSORS} is missing; fit the model again")
    if _hash(path) != saved.tensors_blake2b:
        raise UserError(f"{path}: truncated or changed since it was written; restore it or fit the model again")
    return saved.card, path


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged ({error}); fit the model again") from error


def _hash_of_config(config: Mapping[str, Any]) -> str:
    """Hash the content of the configuration, whatever the layout of its file."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
