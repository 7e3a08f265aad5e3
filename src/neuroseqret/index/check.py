"""Check an index: are stored sequences, their embeddings and the search structure as they were written?

Every row carries hashes of its id, of its events and of its embedding (see `as_written`). Embeddings of rows that were
written without one are checked for their length; some of all are computed again by the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from neuroseqret.errors import DataError
from neuroseqret.index import rows
from neuroseqret.index.as_written import columns_of_hashes, differences
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.store import EMBEDDING, Store
from neuroseqret.models.base import Embedder

AGAIN = 256  # embeddings that are computed again
_MOST = 20  # flaws that are listed one by one
_CLOSE = 1e-3  # of a coordinate: batches of another size round differently


def check_store(store: Store, config: IndexConfig, model: Embedder) -> list[str]:
    """Return one line per flaw, at most 20 and how many more there are; none if the store is sound."""
    flaws = list(_flaws(store, config, model))
    more = [f"and {len(flaws) - _MOST:,} more"] if len(flaws) > _MOST else []
    return flaws[:_MOST] + more


def _flaws(store: Store, config: IndexConfig, model: Embedder) -> Iterator[str]:
    store.refresh()
    columns = list(dict.fromkeys([*rows.EVENTS, *columns_of_hashes(store, config), *model.values]))
    left = AGAIN
    for batch in store.scan(columns):
        table = pa.Table.from_batches([batch])
        try:
            table.validate(full=True)  # that texts and lists end within their columns
        except pa.ArrowInvalid as error:
            yield f"some of {len(table):,} rows: they cannot be read ({error}); restore a copy"
            continue
        sequences = rows.to_sequences(table.select(list(rows.EVENTS)), config, validate=False)
        embedded = rows.embeddings_of(batch.column(EMBEDDING), config.dimension)
        wrong = differences(sequences, embedded, table, config)
        length = np.linalg.norm(embedded, axis=1)
        wrong["its embedding is damaged"] = ~((np.abs(length - 1) < _CLOSE) | (length == 0))
        some = np.arange(len(sequences))[:left]
        try:
            rows.check_events(sequences)
        except DataError as error:  # no model may see these
            yield str(error)
            some = some[:0]
        if len(some):
            left -= len(some)
            read = rows.to_sequences(table[: len(some)].select([*rows.EVENTS, *model.values]), config)
            again = model.embed(read, "corpus", unknown_marks="keep", strict=None)
            differs = np.zeros(len(sequences), bool)
            differs[some] = np.abs(again - embedded[some]).max(1) > _CLOSE
            wrong["its embedding is not the model's"] = differs & ~wrong["its embedding is damaged"]
        for what, where in wrong.items():
            for row in np.flatnonzero(where):
                yield f"sequence {sequences.ids[int(row)].as_py()}: {what}; upsert it from your source"
