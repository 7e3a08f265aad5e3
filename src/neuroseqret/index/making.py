"""A new index: the model, the store with its first rows, the settings, and the engine's collection if there is one."""

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
from neuroseqret.index.store import Store
from neuroseqret.models.base import Embedder, RelevanceModel
from neuroseqret.models.model_folder import SavedModel, read_saved
from neuroseqret.storage.bucket import Bucket

#: Adds the first rows to the store that is being made, in a folder: what becomes visible has them or is not there.
Begin = Callable[[Path, IndexConfig, Store, BucketPlace | None], object]


def embedder_of(model: RelevanceModel) -> Embedder:
    """Return the model itself if it has embeddings; otherwise raise a UserError."""
    if not isinstance(model, Embedder):
        raise UserError(
            f"a {model.name!r} model has no embeddings and cannot be indexed; make the index with a 'self' model "
            "and use this one to rerank"
        )
    return model


def make_folder(
    embedder: Embedder, folder: Path, engine: str | None, settings: dict[str, Any], begin: Begin
) -> IndexConfig:
    """Write the folder of an index, whole or not at all, and return its configuration.

    With an engine it is empty at first: only an index that is there can be brought in line if the engine fails.
    """
    config_for = _configuration(embedder, engine, settings)

    def fill(temporary: Path) -> IndexConfig:
        config = config_for(read_saved(embedder.save(temporary / "model")))
        store = LanceStore.create(temporary / "store", rows.base_schema(config.dimension))
        if engine is None:
            begin(temporary, config, store, None)
        else:
            open_engine(engine, config, folder / HASH_FILE).make()
        return config

    return create_folder(folder, fill)


def make_in_bucket(
    embedder: Embedder, url: str, engine: str | None, settings: dict[str, Any], begin: Begin
) -> BucketPlace:
    """Write an index to an object store, whole or not at all."""
    config_for = _configuration(embedder, engine, settings)
    with tempfile.TemporaryDirectory() as temporary:
        saved = embedder.save(Path(temporary) / "model")
        return BucketPlace.create(
            Bucket(url),
            saved,
            config_for(read_saved(saved)),
            lambda place, store: begin(place.folder, place.config, store, place),
        )


def _configuration(
    embedder: Embedder, engine: str | None, settings: dict[str, Any]
) -> Callable[[SavedModel], IndexConfig]:
    """Check the options of a new index; return what makes its configuration for the model, once that is saved."""
    if engine is not None:
        check_address(engine)
    chosen = make_settings(settings)
    probe = EventSequences.from_lists([([0.0, 1.0], [0, 0])], starts=[0.0], ends=[1.0])
    for name in embedder.values:
        probe = probe.with_column(name, [[0.0, 0.0]])
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
