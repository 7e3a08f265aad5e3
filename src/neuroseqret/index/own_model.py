"""The model of an index: what embeds its sequences and queries, and with what other models its hits can be reranked."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from os import PathLike
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from neuroseqret.data.gaps import check_gaps
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import UserError
from neuroseqret.index import rows
from neuroseqret.index.bucket_place import BucketPlace
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.making import embedder_of
from neuroseqret.methods import registry as methods
from neuroseqret.models.base import Embedder, RelevanceModel, Reranker
from neuroseqret.models.card import ModelCard
from neuroseqret.models.model_folder import read_saved


class OwnModel:
    """The model in an index's folder, which is loaded when it is first needed."""

    def __init__(
        self, folder: Path, config: IndexConfig, place: BucketPlace | None = None, model: Embedder | None = None
    ) -> None:
        self.folder, self.config, self.place = folder, config, place
        self._compared: WeakKeyDictionary[RelevanceModel, tuple[ModelCard | None, bool]] = WeakKeyDictionary()
        if model is not None:
            self.whole = model

    @cached_property
    def whole(self) -> Embedder:
        """The model with all that it can do."""
        return self._loaded(methods.load)

    @cached_property
    def _ready_sooner(self) -> Embedder:
        return self._loaded(methods.load_to_embed)

    @property
    def embedder(self) -> Embedder:
        """What embeds queries: the model if it is loaded, else a form of it that is ready sooner, if there is one."""
        return self.whole if "whole" in vars(self) else self._ready_sooner

    def _loaded(self, load: Callable[[Path], RelevanceModel]) -> Embedder:
        if self.place is None:
            return embedder_of(load(self.folder / "model"))
        try:
            return embedder_of(load(self.place.model()[0]))
        except UserError:  # the copy in the cache is damaged
            return embedder_of(load(self.place.model(anew=True)[0]))

    def check_gaps(self, sequences: EventSequences, strict: bool) -> bool:
        """Warn (or raise) if the times look like another unit than the model's; return whether they look right."""
        card = self.embedder.card
        return card is None or check_gaps(sequences, card.typical_gaps, card.time_unit, strict=strict, stacklevel=3)

    def embed_queries(self, queries: EventSequences) -> npt.NDArray[np.float32]:
        """Return the embeddings of queries whose marks are numbered as the index's: (queries, D)."""
        return rows.check_vectors(
            self.embedder.embed(queries, "query", unknown_marks="keep", strict=None), queries, self.config
        )

    def reranker(self, chosen: str | PathLike[str] | RelevanceModel | None) -> RelevanceModel | None:
        """Return the model that scores hits again, None if there is none: the chosen one, or this one if need be.

        This one is needed where its score is not the cosine of embeddings. The chosen one may be a folder; it must have
        learned the index's marks in the index's unit.
        """
        meaning = self.config.meaning
        if chosen is None:
            return None if self.embedder.score_is_cosine else self.whole
        if isinstance(chosen, RelevanceModel):
            meaning.check_same(chosen.meaning, f"the reranking model {chosen.name!r}")
            return chosen
        meaning.check_same(read_saved(chosen).card.meaning, str(chosen))
        return methods.load(chosen)

    def is_first_stage_of(self, reranker: RelevanceModel) -> bool:
        """Return whether the reranking model builds on this one; they are compared once per fit of it."""
        card, same = self._compared.get(reranker, (None, False))
        if card is None or card is not reranker.card:
            same = isinstance(reranker, Reranker) and reranker.builds_on(self.whole)
            self._compared[reranker] = reranker.card, same
        return same
