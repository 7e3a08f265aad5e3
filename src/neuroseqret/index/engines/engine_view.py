"""`EngineView`: what `View` is to an index without an engine.

Hits come from the engine, sequences by id from the store. Other questions (pages of the corpus, rows by number) need a
snapshot, which is built when the first of them is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from neuroseqret.candidates.finder import Rows, Vectors
from neuroseqret.data.sequences import STRING, EventSequences
from neuroseqret.data.windows import joined
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.engines.engine import Engine
from neuroseqret.index.engines.engine_search import EngineSearch
from neuroseqret.index.filters import Where
from neuroseqret.index.hit import Hits
from neuroseqret.index.keys import hash_strings
from neuroseqret.index.reader import Reader
from neuroseqret.index.rows import to_sequences
from neuroseqret.index.search import SearchOptions
from neuroseqret.index.snapshot import Snapshot
from neuroseqret.index.store import INTERNAL, KEY, OFFSET, PARENT
from neuroseqret.index.view import UnknownId, View


class EngineView(View):
    """The newest commit of an index with an engine."""

    engine: Engine

    def __init__(self, engine: Engine, reader: Reader, config: IndexConfig) -> None:
        known = {"engine": engine, "reader": reader, "config": config, "version": reader.store.refresh()}
        self.__dict__.update(known)  # a view cannot be changed

    @property
    def snapshot(self) -> Snapshot:
        if "_snapshot" not in self.__dict__:
            self.__dict__["_snapshot"] = self.reader.snapshot()
        found: Snapshot = self.__dict__["_snapshot"]
        return found

    def search(
        self,
        queries: EventSequences,
        vectors: Vectors,
        options: SearchOptions,
        where: Where | None = None,
        without: Sequence[Rows] = (),
    ) -> list[Hits]:
        """Return the hits of embedded queries; `without` gives what each query leaves out, as `own_rows` returns it."""
        return EngineSearch(self.engine, self.reader.store, self.config, options, where).run(queries, vectors, without)

    def own_rows(self, id: str) -> Rows:
        """Return the key of the sequence with this id, or of the one that the window with this id was cut from."""
        key = hash_strings(pa.array([id], STRING))
        if not self.config.settings.windowed:
            return key
        found = self._rows(f"id = {_quoted(id)}", [KEY])
        return found.column(KEY).to_numpy() if found.num_rows else key

    def whole(self, ids: Sequence[str]) -> EventSequences:
        """Return the sequences or windows with these ids; in an index of windows whole sequences are put together."""
        return EventSequences.concat([self._one(id) for id in ids]) if ids else EventSequences.from_lists([])

    def _one(self, id: str) -> EventSequences:
        columns = [name for name in self.reader.store.schema.names if name not in INTERNAL]
        if not self.config.settings.windowed:
            key = int(hash_strings(pa.array([id], STRING))[0])
            found = self._rows(f"{KEY} = {key} AND id = {_quoted(id)}", columns)
        else:
            found = self._rows(f"id = {_quoted(id)}", columns)
            if not found.num_rows:
                table = self._rows(f"{PARENT} = {_quoted(id)}", [*columns, PARENT, OFFSET])
                names = {PARENT: "parent", OFFSET: "offset"}
                table = table.rename_columns([names.get(name, name) for name in table.column_names])
                if table.num_rows:
                    return joined(to_sequences(table, self.config))
        if not found.num_rows:
            raise UnknownId(id)
        return to_sequences(found, self.config)

    def _rows(self, where: str, columns: Sequence[str]) -> pa.Table:
        store = self.reader.store
        schema = pa.schema([store.schema.field(name) for name in columns])
        return pa.Table.from_batches(list(store.scan(list(columns), where=where)), schema)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
