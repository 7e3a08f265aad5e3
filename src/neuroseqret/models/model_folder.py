"""The model folder: `config.json` and `model.safetensors`, written complete or not at all, checked when read.

`config.json` tells what the numbers mean: the format's and the library's version, which model it is, preset and
settings, mark names, time unit, seed, fingerprint of the training data, validation metrics. It also holds a hash
of the tensor file and one of itself, so that a truncated, exchanged or edited file is found before it is used:
another scale or strength would change every score and break nothing. Nothing is ever unpickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

import neuroseqret
from neuroseqret.errors import UserError
from neuroseqret.storage.files import new_folder

FORMAT_VERSION = 2  # 2: the configuration is hashed too
CONFIG, TENSORS = "config.json", "model.safetensors"
CONFIG_HASH = "config_blake2b"
HOLDS = (CONFIG, TENSORS, "training.*")


def write_model(
    folder: str | PathLike[str],
    name: str,
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    extras: Mapping[str, bytes] | None = None,
) -> Path:
    """Write a model folder in one step; `extras` are further files by name (training log and curve, `training.*`).

    A folder that exists is replaced only if it is a model folder (or empty) with nothing else in it.
    """
    with new_folder(folder, *HOLDS) as temporary:
        # safetensors wants contiguous tensors that share no memory, and would write a file that nobody else may read.
        content = save({k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()})
        (temporary / TENSORS).write_bytes(content)
        head = {
            "format": "neuroseqret-model",
            "format_version": FORMAT_VERSION,
            "library_version": neuroseqret.__version__,
            "model": name,
            "tensors_blake2b": _hash(temporary / TENSORS),
        }
        # As JSON has it: what is read back must hash as what was written, tuples and all.
        whole = json.loads(json.dumps({**head, **config}))
        whole[CONFIG_HASH] = _hash_of_config(whole)
        (temporary / CONFIG).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        for file, extra in (extras or {}).items():
            (temporary / file).write_bytes(extra)
    return Path(folder)


def read_config(folder: str | PathLike[str]) -> dict[str, Any]:
    """The configuration of a model folder, after checking that it is one and that its version is known."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise UserError(f"{folder}: not a model folder ({CONFIG} is missing); make one with 'neuroseqret fit'")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: damaged ({error}); fit the model again") from error
    if not isinstance(config, dict) or config.get("format") != "neuroseqret-model":
        raise UserError(f"{path}: not written by neuroseqret; make a model with 'neuroseqret fit'")
    if config.get("format_version") != FORMAT_VERSION:
        raise UserError(
            f"{path}: format version {config.get('format_version')}, this library reads {FORMAT_VERSION}; "
            "install the library version that wrote it or fit the model again"
        )
    if config.pop(CONFIG_HASH, None) != _hash_of_config(config):
        raise UserError(f"{path}: changed since it was written; restore it or fit the model again")
    return config


def read_model(folder: str | PathLike[str], name: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Configuration and tensors of a model folder of the given kind; one clear `UserError` if anything is off."""
    config = read_config(folder)
    if config.get("model") != name:
        raise UserError(f"{folder}: holds a {config.get('model')!r} model, not {name!r}")
    path = Path(folder) / TENSORS
    if not path.is_file():
        raise UserError(f"{folder}: {TENSORS} is missing; fit the model again")
    if _hash(path) != config.get("tensors_blake2b"):
        raise UserError(f"{path}: not the file that was saved (truncated or changed); fit the model again")
    try:
        return config, load_file(path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: damaged ({error}); fit the model again") from error


def _hash_of_config(config: Mapping[str, Any]) -> str:
    """Of what the configuration says, however its file is laid out."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _hash(path: Path) -> str:
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
