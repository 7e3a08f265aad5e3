"""Is a row as it was written? Each row carries the hashes of its id, of its sequence's events, and of what it holds.

Windows share the first two with all windows of their sequence. The third is each row's own: of its events and its
embedding. Rows that were written by a version without it are checked by the first two alone. Metadata has no hash.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neuroseqret.candidates.finder import Mask
from neuroseqret.data.sequences import EventSequences
from neuroseqret.errors import DataError
from neuroseqret.index.config import IndexConfig
from neuroseqret.index.keys import Hashes, add_vectors, hash_events, hash_strings
from neuroseqret.index.store import CHECK, DIGEST, EMBEDDING, KEY, PARENT, Store


def hashes_of(sequences: EventSequences) -> tuple[Hashes, Hashes]:
    """Return the hash of the id and the hash of the events of every sequence."""
    return hash_strings(sequences.ids), hash_events(sequences)


def row_hashes(rows: EventSequences, embeddings: npt.NDArray[np.float32]) -> Hashes:
    """Return the hash of the events and the embedding of every row."""
    return add_vectors(hash_events(rows), embeddings)


def columns_of_hashes(store: Store, config: IndexConfig) -> list[str]:
    """Return the columns that `differences` needs beside id and events."""
    wanted = (KEY, DIGEST, CHECK, EMBEDDING, *([PARENT] if config.settings.windowed else []))
    return [name for name in wanted if name in store.schema.names]


def differences(
    sequences: EventSequences, embeddings: npt.NDArray[np.float32], table: pa.Table, config: IndexConfig
) -> dict[str, Mask]:
    """Return what may be wrong, and for which rows it is; `table` has the same rows with their hashes."""
    windowed = config.settings.windowed
    names = table.column(PARENT).combine_chunks() if windowed else sequences.ids
    wrong = {"its id is not as it was written": hash_strings(names) != table.column(KEY).to_numpy()}
    if not windowed:
        wrong["its events are not as they were written"] = hash_events(sequences) != table.column(DIGEST).to_numpy()
    if CHECK in table.column_names:
        written = table.column(CHECK)
        have = written.is_valid().to_numpy()
        differs = have & (row_hashes(sequences, embeddings) != written.fill_null(0).to_numpy())
        if windowed:
            wrong["its events or its embedding are not as they were written"] = differs
        else:  # what is wrong with the events is said already
            said = wrong["its events are not as they were written"]
            wrong["its embedding is not as it was written"] = differs & ~said
    return wrong


def check_as_written(
    sequences: EventSequences, embeddings: npt.NDArray[np.float32], table: pa.Table, config: IndexConfig
) -> None:
    """Raise a `DataError` for the first sequence or window that is not as it was written."""
    for differs in differences(sequences, embeddings, table, config).values():
        if differs.any():
            raise DataError(
                "it is not as it was written: the disk or its copy is damaged",
                sequence=sequences.ids[int(np.argmax(differs))].as_py(),
                remedy="upsert it from your source, and run 'neuroseqret index check'",
            )
