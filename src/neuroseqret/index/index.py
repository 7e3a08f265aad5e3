"""`Index`: a corpus in a folder that can be searched.

For example:

    index = Index.create("model", "index")
    index.add(neuroseqret.read("corpus.parquet"))
    index.search(query, k=10)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.data.gaps import checked_gaps
from neuroseqret.data.meaning import UnknownMarks
from neuroseqret.data.sequences import EventSequence, EventSequences
from neuroseqret.data.windows import Events
from neuroseqret.errors import UserError
from neuroseqret.index import rows
from neuroseqret.index.bucket_place import BucketPlace, seconds_between_looks
from neuroseqret.index.check import check_store
from neuroseqret.index.config import IndexConfig, read_config
from neuroseqret.index.engines import Mirror, open_engine
from neuroseqret.index.engines.codes import HASH_FILE
from neuroseqret.index.engines.engine_view import EngineView
from neuroseqret.index.engines.mirror import FolderMarks, Synced
from neuroseqret.index.filters import Where
from neuroseqret.index.forked import check_not_forked
from neuroseqret.index.given import batches_of, columns_of, names_of, queries_of
from neuroseqret.index.hit import AllHits, Hits
from neuroseqret.index.hot import verify
from neuroseqret.index.info import describe, describe_with_engine, one_line
from neuroseqret.index.lance_store import LanceStore
from neuroseqret.index.making import embedder_of, make_folder, make_in_bucket
from neuroseqret.index.own_model import OwnModel
from neuroseqret.index.reader import Reader
from neuroseqret.index.search import SearchOptions
from neuroseqret.index.store import Store
from neuroseqret.index.view import View
from neuroseqret.index.writer import Added, Writer, in_threads, sum_of
from neuroseqret.methods import registry as methods
from neuroseqret.models.base import Embedder, RelevanceModel
from neuroseqret.models.card import ModelCard
from neuroseqret.models.model_folder import read_saved
from neuroseqret.readers.coercion import ColumnMap, Given, Pairs
from neuroseqret.storage.bucket import Bucket, bucket_url

if TYPE_CHECKING:
    from neuroseqret.readers.coercion import Frame

GRACE = 3600.0  # seconds that `compact` keeps old versions for those who read them


class Index:
    """A corpus in a folder that can be searched, added to and shared by processes. Use `create` or `open` to get one.

    The folder holds the model too. It embeds the sequences that are added and the queries. Threads may share an index:
    searches never wait for one another, for writers or for a rebuild of the search structure. A process that was forked
    after an index was opened cannot use one; start processes with `spawn`.

    For example:

        index = Index.create("model", "index", corpus)
        hits = index.search(query, k=10)
        [(hit.id, hit.score) for hit in hits]
    """

    def __init__(
        self,
        folder: Path,
        config: IndexConfig,
        store: Store,
        model: Embedder | None = None,
        place: BucketPlace | None = None,
    ) -> None:
        self.folder, self.config, self._store = folder, config, store  # in a bucket: the folder of this machine's cache
        self.place = place
        self._mirror: Mirror | None = None
        self._model = OwnModel(folder, config, place, model)
        if config.engine is not None:
            self._mirror = Mirror(store, open_engine(config.engine, config, folder / HASH_FILE), FolderMarks(folder))
        every = None if place is None else seconds_between_looks()
        self._reader, self._writer = Reader(folder, store, config, every), Writer(store, config, self._mirror)

    @classmethod
    def create(
        cls,
        model: str | PathLike[str] | Embedder,
        folder: str | PathLike[str],
        corpus: Given | Iterable[EventSequences] | None = None,
        *,
        columns: ColumnMap | None = None,
        engine: str | None = None,
        **settings: Any,
    ) -> Index:
        """Make an index for a model (or a model folder), and add the sequences of `corpus` if it is given.

        `corpus` and `columns` are as in `add`. The index is there when its first batch is: an error before that leaves
        nothing behind. Every later batch is a commit of its own; after an error or an interruption, go on with `add`.
        With an engine, the empty index is there first.

        `settings` are the fields of `IndexSettings`: `candidates` (`auto`, `exhaustive`, `cells`, `buckets`,
        `hamming`), `fraction`, `at_least`, `hash`, `hash_preset`, `hash_eta`, `bits`, `tables`, `table_bits`, and for
        sub-sequence search `window_events` or `window_duration`, with `window_step`.

        `engine` is the address of a server that finds the candidates, such as `milvus://host:19530/collection`; the
        collection is made. Without one, this library finds them.
        """
        check_not_forked()
        embedder = embedder_of(model if isinstance(model, RelevanceModel) else methods.load(model))
        batches = iter(()) if corpus is None else batches_of(corpus, columns)
        first = list(islice(batches, 1))

        def begin(folder: Path, config: IndexConfig, store: Store, place: BucketPlace | None) -> None:
            cls(folder, config, store, embedder, place).add(first)

        if (url := bucket_url(folder)) is not None:
            place = make_in_bucket(embedder, url, engine, settings, begin)
            made = cls(place.folder, place.config, place.store(), embedder, place)
        else:
            target = Path(folder)
            config = make_folder(embedder, target, engine, settings, begin)
            made = cls(target, config, LanceStore.open(target / "store"), embedder)
        made.add(batches if engine is None else chain(first, batches))
        return made

    @classmethod
    def open(cls, folder: str | PathLike[str], model: Embedder | None = None) -> Index:
        """Open the index in a folder or an object store; its model is loaded when it is first needed."""
        check_not_forked()
        if (url := bucket_url(folder)) is not None:
            place = BucketPlace.open(Bucket(url))
            rows.check_model(place.model()[1], place.config, place.folder / "model")
            opened = cls(place.folder, place.config, place.store(), model, place)
            rows.check_layout(opened._store, place.config, place.folder)
            return opened
        target = Path(folder)
        config = read_config(target)
        try:
            saved = read_saved(target / "model")
        except UserError as error:
            raise UserError(f"{error}; then make the index again with 'neuroseqret index create'") from error
        rows.check_model(saved, config, target / "model")
        opened = cls(target, config, LanceStore.open(target / "store"), model)
        opened._store.refresh()
        rows.check_layout(opened._store, config, target)
        if opened._mirror is not None:
            opened._mirror.heal()
        return opened

    @property
    def model(self) -> Embedder:
        """The model whose embeddings the index holds; it is loaded when it is first needed."""
        return self._model.whole

    @property
    def card(self) -> ModelCard:
        """The card of the model."""
        return self._model.embedder.trained_card()

    @property
    def name(self) -> str:
        """What messages call the index: its folder, or its address in an object store."""
        return str(self.folder) if self.place is None else self.place.bucket.url

    @property
    def short_name(self) -> str:
        """The last part of the name."""
        return self.folder.resolve().name if self.place is None else self.name.rpartition("/")[2]

    # ---------------------------------------------------------------- change

    def add(
        self,
        sequences: Given | Iterable[EventSequences],
        upsert: bool = False,
        *,
        columns: ColumnMap | None = None,
        unknown_marks: UnknownMarks = "error",
        embedder: Embedder | None = None,
        at_once: int = 1,
        strict: bool = False,
    ) -> Added:
        """Add sequences, or batches of them (a generator, for more than fits in memory).

        Sequences may also be a data frame of pandas or polars, an Arrow table (`columns` maps its columns, as in
        `neuroseqret.read`), a mapping from ids to lists of (time, mark) pairs, or a list of such lists.

        Every batch is one commit and safe on disk before the next one begins. Sequences that are there already are
        skipped. A sequence with a known id and other events is an error, or replaced with `upsert`. Marks are taken
        by name; `unknown_marks` says what to do with those that the model never met: `error`, `drop` the events, or
        `keep` them as one mark. `embedder` computes the embeddings in place of the model, `at_once` batches at a
        time: the index's model on a cluster. Times that look like another unit than the model's give a warning, with
        `strict` an error.
        """
        check_not_forked()
        model = self.model if embedder is None else embedder
        card = self.model.trained_card()
        given = batches_of(sequences, columns_of(sequences, columns, card.columns))
        numbered = (self.config.meaning.apply(batch, unknown_marks) for batch in given)
        batches = checked_gaps(numbered, card.typical_gaps, card.time_unit, strict=strict)
        try:
            return sum_of(in_threads(lambda batch: self._writer.add(model, batch, upsert), batches, at_once))
        finally:
            self._reader.catch_up()

    def upsert(
        self,
        sequences: Given | Iterable[EventSequences],
        *,
        columns: ColumnMap | None = None,
        unknown_marks: UnknownMarks = "error",
        strict: bool = False,
    ) -> Added:
        """Add sequences, and replace those whose id is in the index already."""
        return self.add(sequences, upsert=True, columns=columns, unknown_marks=unknown_marks, strict=strict)

    def remove(self, ids: str | Sequence[str]) -> int:
        """Remove sequences by id, skip unknown ids, and return how many were removed."""
        check_not_forked()
        try:
            return self._writer.remove(names_of(ids))
        finally:
            self._reader.catch_up()

    def unknown(self, ids: str | Sequence[str]) -> list[str]:
        """Return those of the ids that are not in the index, each once."""
        check_not_forked()
        return self._writer.unknown(names_of(ids))

    def compact(self, grace: float = GRACE) -> None:
        """Merge the small files of the store, take removed rows out of them, and rebuild the search structure.

        Versions that are older than `grace` seconds are deleted with their files. A process that has the index open
        may still read the version of its last search, so a shorter time is safe only if there is no other process.
        """
        check_not_forked()
        if not grace >= 0:
            raise UserError(f"grace is a number of seconds, 0 or more, not {grace!r}")
        self._writer.compact(grace)
        if self._mirror is None:
            self._reader.rebuild()
        elif self.config.settings.candidates == "hamming":
            self.sync(anew=True)
        else:
            self._mirror.engine.tidy()

    def sync(self, anew: bool = False) -> Synced:
        """Bring the engine in line with what the index holds; with `anew`, empty it and fill it again.

        Filling it again also fits the hash function of binary codes again.
        """
        check_not_forked()
        if self._mirror is None:
            raise UserError(f"{self.name}: the index has no engine, so there is nothing to bring in line")
        with self._store.turn():
            return self._mirror.rebuild() if anew else self._mirror.sync()

    def refresh(self, *, wait: bool = False) -> None:
        """Follow the newest commit, so that the next search need not; call it from a thread that watches the index.

        If so much changed that the search structure has to be rebuilt, that starts in the background. Searches go on
        meanwhile and do not wait for it; with `wait`, this returns when it is done.
        """
        check_not_forked()
        if self._mirror is None:
            self._reader.follow()
            if wait:
                self._reader.wait()

    def watch(self, seconds: float = 0.2, *, apart: bool = False) -> None:
        """Follow the commits of other processes in the background from now on, so that no search reads them itself.

        Searches then see what this process wrote, at once, and what others wrote about `seconds` before; `refresh`
        follows at once. Without this, a search looks for commits and reads what is new before it begins. An index in
        an object store is always watched. With `apart`, the search structure of an index in a folder is rebuilt in a
        process of its own, at low priority: for servers, whose searches then do not feel it.
        """
        check_not_forked()
        if not 0.01 <= seconds <= 86400:
            raise UserError(f"seconds is a number from 0.01 to 86400, not {seconds!r}")
        if self._mirror is None:
            self._reader.watch(seconds, apart)

    # ---------------------------------------------------------------- ask

    @overload
    def search(self, queries: EventSequence, k: int = 10, **options: Any) -> Hits: ...
    @overload
    def search(self, queries: EventSequences | Iterable[EventSequence], k: int = 10, **options: Any) -> AllHits: ...
    @overload
    def search(self, queries: Pairs, k: int = 10, **options: Any) -> Hits: ...
    @overload
    def search(self, queries: Frame | Mapping[str, Any], k: int = 10, **options: Any) -> Hits | AllHits: ...
    @overload
    def search(self, *, id: str, k: int = 10, events: Events | None = None, **options: Any) -> Hits: ...
    @overload
    def search(self, *, id: Sequence[str], k: int = 10, events: Events | None = None, **options: Any) -> AllHits: ...
    def search(  # type: ignore[misc]  # the overloads shorten the list of options
        self,
        queries: Given | None = None,
        k: int = 10,
        *,
        id: str | Sequence[str] | None = None,
        events: Events | None = None,
        columns: ColumnMap | None = None,
        rerank: str | PathLike[str] | RelevanceModel | None = None,
        rerank_top: int | None = None,
        where: Where | None = None,
        exhaustive: bool = False,
        expand: bool = False,
        fraction: float | None = None,
        at_least: int | None = None,
        unknown_marks: UnknownMarks = "error",
        strict: bool = False,
    ) -> Hits | AllHits:
        """Return the k most relevant sequences: one `Hits` for one query, a list of them for many.

        A query is an `EventSequence` or a list of (time, mark) pairs. Many are `EventSequences`, a list of queries or a
        data frame with ids; `columns` maps its columns, as in `neuroseqret.read`, and may be left out if they are
        called as in the training data's frame or file. A frame that has only a time and a mark column is one query.

        Instead of `queries`, `id` names sequences of the index to search with, one or several; they are left out of
        their own hits. `events` takes a part of them, such as `slice(5, 20)` or `(5, 20)`. In an index of windows the
        id may be that of a whole sequence or of one of its windows; no window of the sequence is among the hits.

        `rerank` is a model (or a model folder) that scores the best `rerank_top` again (100, or k if that is more).
        `where` is an SQL condition on the metadata (`"role = 'GK'"`) or a mapping (`{"role": "GK"}`). `exhaustive`
        compares the query with every sequence. `expand` searches a second time with the query moved towards its best
        hits. `fraction` and `at_least` override how much of the corpus is compared. `unknown_marks` and `strict` are
        as in `add`.

        Hits are in the order of relevance, not of likeness: with a model that knows groups, typical sequences of a
        group may come before a copy of the query.
        """
        id = id.as_py() if isinstance(id, pa.Scalar) else id
        check_not_forked()
        view = self.view()
        columns = columns_of(queries, columns, self.card.columns)
        many, own_rows, one = queries_of(view, queries, id, events, columns)
        many = self.config.meaning.apply(many, unknown_marks if id is None else "keep")
        if id is None:
            self._model.check_gaps(many, strict)
        options = self.search_options(
            k,
            rerank=rerank,
            rerank_top=rerank_top,
            exhaustive=exhaustive,
            expand=expand,
            fraction=fraction,
            at_least=at_least,
        )
        if not len(many):
            return AllHits()
        found = view.search(many, self.embed_queries(many), options, where, own_rows)
        for hits, asked in zip(found, many, strict=True):
            hits.asked = asked
            hits.attach(self._fetch)
        return found[0] if one else AllHits(found)

    def _fetch(self, ids: Sequence[str]) -> EventSequences:
        """Return sequences or windows for the hits of a search."""
        return self.view().whole(ids)

    def embed_queries(self, queries: EventSequences) -> npt.NDArray[np.float32]:
        """Return the embeddings of queries whose marks are numbered as the index's: (queries, D)."""
        return self._model.embed_queries(queries)

    def view(self) -> View:
        """Return the newest commit, to ask several questions of the same state of the corpus."""
        check_not_forked()
        if self._mirror is not None:
            return EngineView(self._mirror.engine, self._reader, self.config)
        snapshot, version = self._reader.newest()
        return View(snapshot, version, self._reader, self.config)

    def search_options(
        self,
        k: int = 10,
        *,
        rerank: str | PathLike[str] | RelevanceModel | None = None,
        rerank_top: int | None = None,
        exhaustive: bool = False,
        expand: bool = False,
        fraction: float | None = None,
        at_least: int | None = None,
    ) -> SearchOptions:
        """Return the options of `search`, checked, with the index's settings where they are not given."""
        reranker = self._model.reranker(rerank)
        if reranker is None and rerank_top is not None:
            raise UserError("rerank_top is the number of hits that a second model scores; name the model with rerank")
        settings = self.config.settings
        return SearchOptions(
            k=k,
            exhaustive=exhaustive,
            rerank=reranker,
            builds_on_index=reranker is not None and self._model.is_first_stage_of(reranker),
            rerank_top=rerank_top if rerank_top is not None else 100,
            expand=self._model.embedder.as_query if expand else None,
            fraction=fraction if fraction is not None else settings.fraction,
            at_least=at_least if at_least is not None else settings.at_least,
        )

    def get(self, ids: str | Sequence[str]) -> EventSequences:
        """Return the stored sequences with these ids, in their order; windows are found by `Hit.window`."""
        check_not_forked()
        self._store.refresh()
        return rows.stored(self._store, names_of(ids), self.config, self.folder)

    def check(self) -> list[str]:
        """Read everything and compare it with its checksums; return one line per flaw, none if the index is sound.

        The stored sequences are compared with the hashes that were written with them, embeddings are checked for their
        length and some are computed again, and the search structure is compared with its checksums.
        """
        check_not_forked()
        flaws = check_store(self._store, self.config, self.model) + verify(self.folder / "hot", self.config.dimension)
        return flaws if self._mirror is None else flaws + self._mirror.differences()

    def __repr__(self) -> str:
        return one_line(self.name, self.config, len(self))

    def __len__(self) -> int:
        """Return the number of sequences, or of windows if the index holds windows."""
        check_not_forked()
        if self._mirror is not None:
            self._store.refresh()
            return self._store.count()
        return self._reader.snapshot().count

    def info(self) -> dict[str, Any]:
        """Return what the index holds and how it searches."""
        check_not_forked()
        if self._mirror is not None:
            return describe_with_engine(self.folder, self.config, self._mirror.engine, len(self))
        size = None if self.place is None else self.place.size()
        return describe(self.folder, self.config, self._reader.snapshot(), self.name, size)
