"""A new index folder: the model, an empty store, the settings, and the engine's collection if there is one."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import rows
from neuroseqret.index.bucket_place import BucketPlace
from neuroseqret.index.config import IndexConfig, create_folder, make_settings
from neuroseqret.index.engines import check_address, open_engine
from neuroseqret.index.engines.codes import HASH_FILE
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.models.base import Embedder, RelevanceModel
from neuroseqret.models.model_folder import SavedModel, read_saved
from neuroseqret.storage.bucket import Bucket


def embedder_of(model: RelevanceModel) -> Embedder:
    """Return the model itself if it has embeddings; otherwise raise a UserError."""
    if not isinstance(model, Embedder):
        raise UserError(
            f"a {model.name!r} model has no embeddings and cannot be indexed; make the index with a 'self' model "
            "and use this one to rerank"
        )
    return model


def make_folder(embedder: Embedder, folder: Path, engine: str | None, settings: dict[str, Any]) -> IndexConfig:
    """Write the folder of an empty index, whole or not at all, and return its configuration."""
    config_for = _configuration(embedder, engine, settings)

    def fill(temporary: Path) -> IndexConfig:
        config = config_for(read_saved(embedder.save(temporary / "model")))
        LanceStore.create(temporary / "store", rows.base_schema(config.dimension))
        if engine is not None:
            open_engine(engine, config, folder / HASH_FILE).make()
        return config

    return create_folder(folder, fill)


def make_in_bucket(embedder: Embedder, url: str, engine: str | None, settings: dict[str, Any]) -> BucketPlace:
    """Write an empty index to an object store, whole or not at all."""
    config_for = _configuration(embedder, engine, settings)
    with tempfile.TemporaryDirectory() as temporary:
        saved = embedder.save(Path(temporary) / "model")
        return BucketPlace.create(Bucket(url), saved, config_for(read_saved(saved)))


def _configuration(
    embedder: Embedder, engine: str | None, settings: dict[str, Any]
) -> Callable[[SavedModel], IndexConfig]:
    """Check the options of a new index; return what makes its configuration for the model, once that is saved."""
    if engine is not None:
        check_address(engine)
    chosen = make_settings(settings)
    probe = EventSequences.from_lists([([0.0, 1.0], [0, 0])], starts=[0.0], ends=[1.0])
    dimension = embedder.compute_embeddings(probe, "corpus").shape[1]
    return lambda saved: IndexConfig(
        model=embedder.name,
        dimension=dimension,
        tensors_blake2b=saved.tensors_blake2b,
        marks=saved.card.marks,
        mark_names=saved.card.mark_names,
        time_unit=saved.card.time_unit,
        settings=chosen,
        engine=engine,
        identity=None if engine is None else uuid.uuid4().hex,
    )
